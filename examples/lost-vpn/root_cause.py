"""The root cause of a lost VPN, found through an ontology of causes.

`net:ifDown` causes `net:linkDown`, which causes `net:mplsTunnelDown`, which causes the loss of the
VPN: the ontology says so, and that `net:causes` is transitive. `live` subscribes to losses that
have a device to blame, and asks the history for the fault that came first. `correlated` finds the
same by the correlation of `rules.cor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import ensue
from ensue.events import cloudevents
from ensue.events.event import Event
from ensue.history import History
from ensue.knowledge import Ontology
from ensue.subscriptions import Filter, Index

HERE = Path(__file__).parent
FAULTS = Ontology.load(HERE / "faults.ttl")

BLAMED = "fault IS_A net:DeviceFault AND ONTPROP<net:causes>(fault) = net:mplsTunnelDown"
LOST = Filter.parse(f"fault SAME_AS net:vpnDown AND start AFTER(10 s) ({BLAMED})")
CAUSE = Filter.parse(f"{BLAMED} AND end BEFORE(10 s) (fault SAME_AS net:vpnDown)")


def live(traps: Iterable[Event], url: str = "memory:") -> Iterator[tuple[Event, Event]]:
    """For each VPN that is lost: the trap that says so, and the first that caused it."""
    with History.open(url, ontology=FAULTS) as history:
        subscriptions = Index(history=history, ontology=FAULTS)
        subscriptions.add("operator", LOST)
        for trap in traps:
            found = subscriptions.match(trap)
            history.add(trap)
            if found:
                window = trap.time - 10_000_000
                yield trap, history.find(CAUSE, since=window, until=trap.time, limit=1)[0]


def correlated(traps: Iterable[Event]) -> Iterator[Event]:
    """The outputs of `rules.cor`."""
    return ensue.load(HERE / "rules.cor", ontology=FAULTS).run(traps)


def read_traps(path: Path = HERE / "traps.jsonl") -> list[Event]:
    return [cloudevents.decode(line) for line in path.read_text("utf-8").splitlines()]


def main() -> None:
    for lost, cause in live(read_traps()):
        print(
            f"{lost.data['device']} lost its VPN: {cause.data['fault']} at {cause.data['device']}"
        )


if __name__ == "__main__":
    main()
