"""`ensue test`: golden cases.

`ensue.casefile` reads, runs and compares the cases; this module collects them and shows the
results.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ensue.casefile import (
    Case,
    CaseResult,
    find_case_files,
    read_cases,
    render,
    run_case,
    with_parameters,
)
from ensue.casefile.rendering import DIFFERENT, EXTRA, MISSING
from ensue.cli.libraries import (
    EngineName,
    OntologyFiles,
    SetOption,
    given_parameters,
    load_ontology,
)
from ensue.cli.terminal import EXIT_FINDINGS, counted, show, width
from ensue.engine.choosing import choose_engine
from ensue.errors import CaseError, UsageError

_ROOM_FOR_COUNTS = 8


def run_cases(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="CASES",
            help="Case files (*.toml), or folders of them.",
            show_default=False,
        ),
    ],
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name every case, not only failed ones.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            "--only", "-k", metavar="TEXT", help="Only cases with this text in their name."
        ),
    ] = None,
    engine: EngineName = "auto",
    ontology: OntologyFiles = None,
    settings: SetOption = None,
) -> None:
    """Test rules by golden cases: events and expected outputs.

    A case has a library, events, and the outputs that are expected.

    \b
    A case file is TOML:
      [[case]]
      name = "two-in-a-row"
      why = "one failed login is not enough"
      library_file = "rules.cor"
      events = ["0 Failed", "1 Failed", '2 Done from web {"user": "ann"}']
      outputs = ["3 Alarm"]

    An event is 'TIME TYPE from SOURCE JSON', and its id is its number in the list; an output is
    'TRIGGER TYPE LABELS JSON', where the trigger is the id of an event, or timer@TIME. Instead of
    events, events_file can name a file that `ensue run` can read; columns, type and timezone say
    what its columns mean. `--set` goes before the parameters that a case gives, and is for the
    cases whose library has the parameter.

    \b
    Example:
      ensue test cases.toml
      ensue test cases/ -v
      ensue test cases.toml --set limit=10

    \b
    Exit codes:
      0  every case passed
      1  a case failed
      2  a file cannot be used (the others are run nevertheless), or a wrong call
    """
    choose_engine(engine)
    known = load_ontology(ontology)
    cases, problems = _gather(paths)
    if only is not None:
        cases = [case for case in cases if only in case.name]
        if not cases and not problems:
            raise UsageError(
                f"`--only`: no case has `{only}` in its name: `--verbose` alone shows all names"
            )
    if not cases:
        number = _number_of(problems)
        raise CaseError("\n".join([f"no case was run: {counted(number, 'problem')}", *problems]))
    cases = with_parameters(cases, given_parameters(settings))
    failed = _run(cases, partial(run_case, engine=engine, ontology=known), verbose)
    for result in failed:
        show("")
        _show_failure(result)
    if failed or not verbose:
        show("")
    passed = len(cases) - len(failed)
    show(f"{passed:,} passed, {len(failed):,} failed", "bold red" if failed else "bold green")
    if problems:
        found = counted(_number_of(problems), "problem")
        raise CaseError("\n".join([f"some cases were not run, because of {found}:", *problems]))
    if failed:
        raise typer.Exit(EXIT_FINDINGS)


def _number_of(problems: Sequence[str]) -> int:
    return sum(problem.count("\n") + 1 for problem in problems)


def _gather(paths: Sequence[Path]) -> tuple[list[Case], list[str]]:
    """The cases of all files that can be used, and the problems of the others."""
    cases: list[Case] = []
    problems: list[str] = []
    for path in paths:
        if path.suffix == ".cor" and path.is_file():
            problems.append(
                f"{path}: is a library, and cases are TOML files: `ensue check {path}` checks it"
            )
            continue
        files = find_case_files(path)
        if not files:
            problems.append(f"{path}: the folder has no case file (*.toml)")
        for file in files:
            try:
                cases += read_cases(file)
            except CaseError as error:
                problems.append(str(error))
    return cases, problems


def _run(
    cases: Sequence[Case], run: Callable[[Case], CaseResult], verbose: bool
) -> list[CaseResult]:
    failed: list[CaseResult] = []
    dots_a_line = width() - _ROOM_FOR_COUNTS
    for number, case in enumerate(cases, 1):
        result = run(case)
        if not result.passed:
            failed.append(result)
        if verbose:
            show(
                f"{'passed' if result.passed else 'FAILED'}  {case}", "" if result.passed else "red"
            )
        else:
            sys.stdout.write("." if result.passed else "F")
            if number % dots_a_line == 0:
                sys.stdout.write(f" {number:,}\n")
            sys.stdout.flush()
    if not verbose and len(cases) % dots_a_line:
        sys.stdout.write("\n")
    return failed


def _show_failure(result: CaseResult) -> None:
    heading, *lines = render(result, width())
    show(f"FAILED {heading}", "bold red")
    for line in lines:
        differs = line[2:4] in (DIFFERENT, EXTRA, MISSING)
        show(line, "red" if differs else "")
