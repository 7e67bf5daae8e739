"""`ensue compare`: how two correlations of a library stand to each other, with a witness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ensue.cli.deadlines import Deadline, seconds_of
from ensue.cli.libraries import OntologyFiles, load_library, require_correlation
from ensue.cli.terminal import EXIT_UNUSABLE, say, show
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.lang.durations import print_duration
from ensue.lang.syntax import Duration
from ensue.machine.analyses.comparison import Comparison, compare
from ensue.machine.analyses.events.alphabet import OTHER_SOURCE
from ensue.machine.analyses.witness import Witness

EXPLANATIONS = {
    "equivalent": "{one} and {two} put something out at the same moments.",
    "contained": "whenever {one} puts something out, {two} does; not the other way round.",
    "contains": "whenever {two} puts something out, {one} does; not the other way round.",
    "different": "each puts something out where the other does not.",
    "undecided": "{reason}.",
}


def compare_correlations(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="LIB... A B",
            help="Library files (*.cor), then the names of two correlations in them.",
            show_default=False,
        ),
    ],
    deadline: Deadline = "1min",
    ontology: OntologyFiles = None,
) -> None:
    """Compare two correlations: equivalent, contained, contains or different.

    They are compared by the finite sequences of events at whose last one they put something out;
    what they put out is left aside. The first word says how A stands to B. A shortest sequence that
    tells them apart follows: the time, the event, and what each of them does.

    \b
    Example:
      ensue compare rules.cor DoubleMatch Either

    \b
    Exit codes:
      0  an answer was found, whichever it is
      2  undecided, a library with errors, a name that is not in it, or a wrong call
    """
    seconds = seconds_of(deadline)
    *files, first, second = ["", "", *arguments][-max(len(arguments), 2) :]
    if not files:
        raise UsageError("name a library and two of its correlations: `ensue compare LIB A B`")
    library = load_library([Path(file) for file in files], ontology)
    for name in (first, second):
        require_correlation(library, name)
    one, two = library.correlations[first], library.correlations[second]
    found = compare(one, two, library.checked.types, seconds=seconds)
    for line in answer(first, second, found):
        show(line)
    for note in found.notes:
        say(f"note: {note}", "yellow")
    if found.relation == "undecided":
        raise typer.Exit(EXIT_UNUSABLE)


def answer(first: str, second: str, found: Comparison) -> Iterator[str]:
    """The lines of the answer; the first word is the relation."""
    text = EXPLANATIONS[found.relation].format(one=first, two=second, reason=found.reason)
    yield found.relation
    yield f"  {text}"
    for name, witness in ((first, found.only_first), (second, found.only_second)):
        if witness is not None:
            yield ""
            yield f"only {name} puts something out at the end of"
            yield from table(first, second, witness)


def table(first: str, second: str, witness: Witness) -> Iterator[str]:
    """A witness as columns: when, what comes, and what each of the two does."""
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
    """The type, the ports that it matches, and the values that the event was given."""
    values: dict[str, Any] = {**event.attributes, **event.extensions}
    if event.source != OTHER_SOURCE:
        values["source"] = event.source
    shown = ", ".join(f"{name} = {_value(value)}" for name, value in values.items())
    return f"{event.type} {', '.join(ports)}" + (f" {{ {shown} }}" if shown else "")


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"'{value}'" if isinstance(value, str) else str(value)
