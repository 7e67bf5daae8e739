"""A view of what runs that updates in place, in the cell that made it.

In comes a source: a `Run` that the notebook pushes events into, a `Channel`, a subscription to one,
or the address of a server; out goes HTML, through IPython's display handle, so that any notebook
can show it without scripts. The view is drawn again at most so often, however many events come, and
once more at the end. What a rule means is not looked at here: the view counts what it is given.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, Self

from ensue.engine.inputs import EventLike, Instant
from ensue.engine.run import Run
from ensue.errors import EnsueError, UsageError
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.library import duration_microseconds
from ensue.notebook.sources import ShownEvent, deliveries_of
from ensue.notebook.tables import rows_html

if TYPE_CHECKING:
    from ensue.channel.asyncio_api import Subscription
    from ensue.channel.channel import Channel

ROWS = 10
_SMALL = "padding:.1em .8em .1em 0;text-align:left"


class LiveView:
    """Made by `live`. `push` is for a view of a run; the others fill themselves until `stop`."""

    def __init__(
        self,
        title: str,
        show: Callable[[LiveView], Callable[[LiveView], None]],
        every: float,
        rows: int,
        run: Run | None = None,
    ) -> None:
        self.title = title
        self.events = 0
        self.outputs = 0
        self.problem: str | None = None
        self.is_running = True
        self._run = run
        self._every = every
        self._latest: deque[Event] = deque(maxlen=rows)
        self._by_rule: Counter[str] = Counter()
        self._last_by_rule: dict[str, int] = {}
        self._started = time.monotonic()
        self._ended: float | None = None
        self._drawn = float("-inf")
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._update = show(self)
        self._end_source: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None

    # --- filling ---------------------------------------------------------------------------------

    def push(self, event: EventLike) -> list[Event]:
        """Push an event into the run of the view; out come its outputs, as from `run.push`."""
        return self._take_outputs(self._the_run.push(event), events=1)

    def push_all(self, events: Iterable[EventLike]) -> list[Event]:
        """Push events one by one, so that the view follows."""
        return [output for event in events for output in self.push(event)]

    def advance(self, instant: Instant) -> list[Event]:
        """Let the clock of the run go on, as `run.advance` does."""
        return self._take_outputs(self._the_run.advance(instant))

    @property
    def _the_run(self) -> Run:
        if self._run is None:
            raise UsageError(
                "this view shows a channel or a server, which get their events elsewhere:"
                " only a view of a run is pushed into"
            )
        if not self.is_running:
            raise UsageError("the view is stopped: push into the run itself, or make another view")
        return self._run

    def _take_outputs(self, outputs: list[Event], events: int = 0) -> list[Event]:
        with self._lock:
            self.events += events
            for output in outputs:
                self._count(output)
        self._draw_soon()
        return outputs

    def _count(self, output: Event) -> None:
        self.outputs += 1
        self._latest.appendleft(output)
        rule = output.extensions.get("correlation")
        if isinstance(rule, str):
            self._by_rule[rule] += 1
            self._last_by_rule[rule] = output.time

    def _take(self, delivery: ShownEvent) -> None:
        with self._lock:
            if delivery.is_output:
                self._count(delivery.event)
            else:
                self.events += 1
                self._latest.appendleft(delivery.event)
        self._draw_soon()

    def _follow(self, deliveries: Iterator[ShownEvent], end: Callable[[], None]) -> None:
        """Take deliveries in a thread of its own until there are no more, or `stop`."""

        def follow() -> None:
            try:
                for delivery in deliveries:
                    if not self.is_running:
                        return
                    self._take(delivery)
            except EnsueError as error:
                self.problem = str(error)
            except Exception as error:
                # A source that is closed under a reader fails in its own way.
                if self.is_running:
                    self.problem = f"{type(error).__name__}: {error}"
            self._end()

        self._end_source = end
        self._thread = threading.Thread(target=follow, name="ensue live view", daemon=True)
        self._thread.start()

    # --- ending ----------------------------------------------------------------------------------

    def stop(self) -> Self:
        """End the view; what was seen last stays. A run goes on, a subscription is closed."""
        self.is_running = False
        if self._end_source is not None:
            with suppress(Exception):
                self._end_source()
            self._end_source = None
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=2)
        self._end()
        return self

    def _end(self) -> None:
        with self._lock:
            self.is_running = False
            if self._ended is not None:
                return
            self._ended = time.monotonic()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        self._update(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- drawing ---------------------------------------------------------------------------------

    def _draw_soon(self) -> None:
        """Draw now if that is allowed again, else once it is."""
        with self._lock:
            if self._ended is not None or self._timer is not None:
                return
            wait = self._drawn + self._every - time.monotonic()
            if wait > 0:
                self._timer = threading.Timer(wait, self._draw_late)
                self._timer.daemon = True
                self._timer.start()
                return
            self._drawn = time.monotonic()
        self._update(self)

    def _draw_late(self) -> None:
        with self._lock:
            self._timer = None
            if self._ended is not None:
                return
            self._drawn = time.monotonic()
        self._update(self)

    def __repr__(self) -> str:
        state = "running" if self.is_running else "stopped"
        return f"{self.title}: {self._counted()}, {state}"

    def _counted(self) -> str:
        events, outputs = f"{self.events:,} event", f"{self.outputs:,} output"
        plural = ("" if self.events == 1 else "s"), ("" if self.outputs == 1 else "s")
        return f"{events}{plural[0]}, {outputs}{plural[1]}"

    def _repr_html_(self) -> str:
        with self._lock:
            seconds = max((self._ended or time.monotonic()) - self._started, 1e-9)
            shown, count = list(self._latest), self.events + self.outputs
            if self._by_rule or self._run is not None:
                count = self.outputs
            rate = (self.events or self.outputs) / seconds
            rules = self._rules_html()
        state = "● running" if self.is_running else "○ stopped"
        colour = "#1a9a70" if self.is_running else "inherit"
        problem = f'<p style="color:#c0392b">{escape(self.problem)}</p>' if self.problem else ""
        return (
            f"<div><strong>{escape(self.title)}</strong> "
            f'<span style="color:{colour}">{state}</span>'
            f"<p>{self._counted()}, {rate:,.1f} a second</p>"
            f"{problem}{rules}{rows_html(shown, count)}</div>"
        )

    def _rules_html(self) -> str:
        if not self._by_rule:
            return ""
        rows = "".join(
            f'<tr><td style="{_SMALL}">{escape(rule)}</td><td style="{_SMALL}">{number:,}</td>'
            f'<td style="{_SMALL}">{escape(format_time(self._last_by_rule[rule]))}</td></tr>'
            for rule, number in self._by_rule.most_common(ROWS)
        )
        heads = "".join(f'<th style="{_SMALL}">{each}</th>' for each in ("rule", "outputs", "last"))
        head = f"<thead><tr>{heads}</tr></thead>"
        return f"<table style='margin-bottom:1em'>{head}<tbody>{rows}</tbody></table>"


def live(
    source: Run | Channel | Subscription | str,
    wants: Any = None,
    *,
    every: str = "250 ms",
    rows: int = ROWS,
    **filters: str,
) -> LiveView:
    """Show what runs, here and now, and keep it up to date until `stop`.

    Of a run, what the view's `push` puts in and what comes of it. Of a channel, the events that
    match `wants` (as for `channel.subscribe`), or those of a subscription. Of a server, by its
    address, what `ensue tail` would print; `filter`, `kinds`, `library`, `correlation` and `after`
    choose as they do there. The view is drawn again no more often than `every`.
    """
    pace = duration_microseconds(every) / 1_000_000
    if isinstance(source, Run):
        if wants is not None or filters:
            raise UsageError("a run puts out what its library says: leave `wants` and filters out")
        rules = ", ".join(source.rules)
        return LiveView(rules or "a run", _displayed, pace, rows, source)
    title, deliveries, end = deliveries_of(source, wants, filters)
    view = LiveView(title, _displayed, pace, rows)
    view._follow(deliveries, end)
    return view


def _displayed(view: LiveView) -> Callable[[LiveView], None]:
    """Show a view in the cell that runs; out comes the function that shows it again."""
    try:
        from IPython import display
    except ModuleNotFoundError:
        raise UsageError(
            "a live view is shown by IPython, which is not installed: run this in a notebook"
        ) from None
    make: Any = display.DisplayHandle
    handle = make()
    handle.display(view)

    def update(changed: LiveView) -> None:
        handle.update(changed)

    return update
