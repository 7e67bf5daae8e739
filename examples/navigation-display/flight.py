"""The navigation display, live on an event channel: seven components, each with its trigger.

Global positioning and the navigator run on timeouts of the channel, pilot control by hand, and the
other four when their correlation of `rules.cor` notifies them. Each publishes what the paper's
table says; the display is what a pilot would see. Priorities come from `schedule.toml`, in which
components say how often they run and how long they take. `Flight` takes any channel with that
schedule, so that a test can let minutes pass on a virtual clock in no time; started by itself, this
flies for a moment of real time.
"""

from __future__ import annotations

import time
from pathlib import Path

import ensue
from ensue.channel import Channel, Supplier, build, correlated, nothing
from ensue.events.event import Event

RULES = ensue.load(Path(__file__).parent / "rules.cor")
SCHEDULE = Path(__file__).parent / "schedule.toml"

# Component, the type of its output, and its correlation: the last four rows of the paper's table.
CORRELATED = (
    ("airframe", "Airframe", "AirframeUpdate"),
    ("tactical steering", "Tactical", "TacticalSteering"),
    ("navigational steering", "Navigational", "NavigationalSteering"),
    ("navigation display", "Display", "NavigationDisplay"),
)


class Flight:
    """All components on a channel. `shown` holds what the display has shown: time and mode."""

    def __init__(
        self, channel: Channel, gps_every: str = "50 ms", nav_every: str = "200 ms"
    ) -> None:
        self.shown: list[tuple[int, str]] = []
        self._channel = channel
        self._timed("global positioning", "Gps", gps_every)
        self._timed("navigator", "Nav", nav_every)
        for name, output, correlation in CORRELATED:
            self._notified(name, output, correlation)
        channel.consumers.connect("screen", self._show, "Display", operation="screen")
        self._pilot = channel.suppliers.connect("pilot control", "Pilot")
        self._mode = "t"

    def choose(self, mode: str) -> None:
        """What the pilot does: `t` for tactical data, `n` for navigational."""
        self._mode = mode
        self._pilot.send("Pilot", {"mode": mode})

    def _timed(self, name: str, output: str, every: str) -> None:
        supplier = self._channel.suppliers.connect(name, output)

        def act(event: Event) -> None:
            supplier.push(Event(f"{name}:{event.id}", name, output, event.time, {}))

        consumer = self._channel.consumers.connect(name, act, nothing(), operation=name)
        consumer.every(every, output)

    def _notified(self, name: str, output: str, correlation: str) -> None:
        supplier: Supplier = self._channel.suppliers.connect(name, output)
        self._channel.consumers.connect(
            name, supplier.push, correlated(RULES, correlation), operation=name
        )

    def _show(self, event: Event) -> None:
        self.shown.append((event.time, self._mode))


def main() -> None:
    builder = build("full", "aircraft").library(RULES).schedule(SCHEDULE)
    with builder.dispatching("pool", threads=1).done() as channel:
        flight = Flight(channel)
        for mode, name in (("t", "tactical"), ("n", "navigational"), ("t", "tactical")):
            flight.choose(mode)
            before = len(flight.shown)
            time.sleep(0.5)
            print(f"{name:>12}: {len(flight.shown) - before} pictures in half a second")
        late = [each.name for each in channel.schedule.report() if each.overruns]
        print(f"   took longer than planned: {', '.join(late) or 'none'}")


if __name__ == "__main__":
    main()
