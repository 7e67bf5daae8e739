"""`ensue compare`: the relation of two correlations, with a witness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.deadlines import Deadline, seconds_of
from ensue.cli.libraries import OntologyFiles, SetOption, load_library, require_correlation
from ensue.cli.terminal import EXIT_UNUSABLE, say, show
from ensue.errors import UsageError
from ensue.explaining.comparing import answer
from ensue.machine.analyses.comparison import compare


def compare_correlations(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="LIB... A B",
            help="Library files (*.cor), then the names of two correlations in them.",
            show_default=False,
        ),
    ],
    deadline: Deadline = "8s",
    ontology: OntologyFiles = None,
    settings: SetOption = None,
) -> None:
    """Compare two correlations: equivalent, contained, contains or different.

    They are compared by the finite sequences of events at whose last event they have an output; the
    content of outputs is ignored, but for extensions that `with` sets. The first word is the
    relation of A to B. A shortest sequence of events on which they differ follows: the time, the
    event, and what each of them does.

    \b
    Example:
      ensue compare rules.cor DoubleMatch Either

    \b
    Exit codes:
      0  an answer was found
      2  undecided, a library with errors, an unknown name, or a wrong call
    """
    seconds = seconds_of(deadline)
    *files, first, second = ["", "", *arguments][-max(len(arguments), 2) :]
    if not files:
        raise UsageError("give a library and two of its correlations: `ensue compare LIB A B`")
    library = load_library([Path(file) for file in files], ontology, settings)
    for name in (first, second):
        require_correlation(library, name)
    one, two = library.correlations[first], library.correlations[second]
    found = compare(one, two, library.checked.types, seconds=seconds)
    for line in answer(first, second, found):
        show(line)
    for note in found.notes:
        say(f"note: {note}", "yellow")
    if found.relation == "undecided":
        if found.is_out_of_time:
            say("note: `--deadline` allows more time, as `--deadline 1min`", "yellow")
        raise typer.Exit(EXIT_UNUSABLE)
