"""`ensue schedule`: priorities from rates, and whether every operation meets its deadline."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.terminal import EXIT_FINDINGS, say, show

if TYPE_CHECKING:
    from ensue.channel.scheduling.schedule import Schedule, Scheduled


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    SVG = "svg"


def schedule(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A TOML file with the operations, and with a table [schedule].",
            show_default=False,
        ),
    ],
    measure: Annotated[
        Path | None,
        typer.Option(
            metavar="RECORD",
            help="Measured execution times, as `channel.schedule.save` writes them, for operations"
            " without `worst`.",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text: a table; json: the same as data; svg: a chart of one hyperperiod.",
        ),
    ] = Format.TEXT,
) -> None:
    """Give operations their priorities, and prove that they meet their deadlines.

    Rates travel from suppliers to consumers. For one thread the worst response times are exact; for
    several they are a safe bound, and the answer says so.

    \b
    Example:
      ensue schedule schedule.toml
      ensue schedule schedule.toml --measure flown.json
      ensue schedule schedule.toml --format svg > chart.svg

    \b
    Exit codes:
      0  schedulable
      1  an operation misses its deadline, or cannot be proved to meet it
      2  a file with mistakes, or a wrong call
    """
    from ensue.channel.scheduling.measured import read_record
    from ensue.channel.scheduling.schedule import Schedule

    found = Schedule.of(file, read_record(measure) if measure is not None else None)
    match format_:
        case Format.TEXT:
            _show_table(found)
        case Format.JSON:
            _show_json(found)
        case Format.SVG:
            from ensue.channel.scheduling.drawing import gantt

            show(gantt(found).rstrip("\n"))
            say(_verdict(found))
    if not found.is_schedulable:
        raise typer.Exit(EXIT_FINDINGS)


def _verdict(found: Schedule) -> str:
    threads = "one thread" if found.threads == 1 else f"{found.threads} threads"
    share = f"{found.utilisation:.1%} of {threads}, {found.strategy}"
    missed = found.first_missed
    if missed is None:
        how = "" if found.is_exact else "; response times are safe bounds"
        return f"schedulable: {share}{how}"
    if missed.response is None:
        what = f"`{missed.name}` has no bound: more work comes than the threads can do"
    else:
        over = _milliseconds(missed.response - missed.deadline)
        what = f"`{missed.name}` misses its deadline by {over} ms"
    if not found.is_exact:
        what += " by a bound that may be too large: it is not proved that it meets it"
    return f"unschedulable: {what}; {share}"


def _show_table(found: Schedule) -> None:
    show(_verdict(found))
    show("")
    head = ["operation", "rate", "share", "prio", "sub", "worst ms", "response ms", "deadline ms",
            "laxity ms"]  # fmt: skip
    rows = [head, *(_row(each) for each in found.operations)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        name, *numbers = row
        cells = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))
        show("  ".join([name.ljust(widths[0]), *cells]).rstrip())


def _row(each: Scheduled) -> list[str]:
    laxity = each.laxity
    return [
        each.name if not each.critical else f"{each.name} !",
        f"{each.rate:.4g}/s",
        f"{each.utilisation:.1%}",
        str(each.priority),
        str(each.sub_priority),
        _milliseconds(each.worst),
        "none" if each.response is None else _milliseconds(each.response),
        _milliseconds(each.deadline),
        "" if laxity is None else _milliseconds(laxity),
    ]


def _milliseconds(microseconds: int) -> str:
    return f"{microseconds / 1_000:.2f}".rstrip("0").rstrip(".")


def _show_json(found: Schedule) -> None:
    import msgspec

    missed = found.first_missed
    told = {
        "schedulable": found.is_schedulable,
        "exact": found.is_exact,
        "strategy": found.strategy,
        "threads": found.threads,
        "utilisation": found.utilisation,
        "first_missed": missed.name if missed else None,
        "operations": [
            {
                "name": each.name,
                "rate": each.rate,
                "utilisation": each.utilisation,
                "priority": each.priority,
                "sub_priority": each.sub_priority,
                "critical": each.critical,
                "worst_us": each.worst,
                "response_us": each.response,
                "deadline_us": each.deadline,
                "laxity_us": each.laxity,
            }
            for each in found.operations
        ],
    }
    show(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
