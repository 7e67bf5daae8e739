"""The relation of two correlations as lines of text: the answer, then its witness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensue.events.event import Event
from ensue.lang.durations import print_duration
from ensue.lang.syntax import Duration
from ensue.machine.analyses.comparison import RuleComparison
from ensue.machine.analyses.events.sampling import OTHER_SOURCE
from ensue.machine.analyses.witness import Witness

EXPLANATIONS = {
    "equivalent": "{one} and {two} put something out at the same moments.",
    "contained": "whenever {one} puts something out, {two} does; not the other way round.",
    "contains": "whenever {two} puts something out, {one} does; not the other way round.",
    "different": "each puts something out where the other does not.",
    "undecided": "{reason}.",
}


def answer(first: str, second: str, found: RuleComparison) -> Iterator[str]:
    """The lines of the answer; the first word is the relation."""
    text = EXPLANATIONS[found.relation].format(one=first, two=second, reason=found.reason)
    if found.relation == "different" and not found.witnesses:
        text = f"{found.reason}."
    yield found.relation
    yield f"  {text}"
    for name, witness in ((first, found.only_first), (second, found.only_second)):
        if witness is not None:
            yield ""
            yield f"only {name} puts something out at the end of"
            yield from table(first, second, witness)


def table(first: str, second: str, witness: Witness) -> Iterator[str]:
    """A witness as columns: the time, the event, and what each of the two correlations does."""
    rows = [("time", "event", first, second)]
    for moment in witness.moments:
        after = print_duration(Duration(moment.after)) if moment.after else "0 s"
        event = "(the clock)" if moment.event is None else describe(moment.event, moment.port_names)
        does = ["puts out" if out else "-" for out in moment.puts_out]
        rows.append((after, event, does[0], does[1]))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def describe(event: Event, ports: Sequence[str]) -> str:
    """The type of an event, the ports that it matches, and its values."""
    values: dict[str, Any] = {**event.attributes, **event.extensions}
    if event.source != OTHER_SOURCE:
        values["source"] = event.source
    shown = ", ".join(f"{name} = {_value(value)}" for name, value in values.items())
    return f"{event.type} {', '.join(ports)}" + (f" {{ {shown} }}" if shown else "")


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"'{value}'" if isinstance(value, str) else str(value)
