"""`ensue warm`: compiles what the first runs on a machine would compile.

Loops are compiled for the machine at their first use, each for the kinds of arrays it is given.
Small libraries of every form therefore run over small files of every format, on the engine with
compiled loops; the compiled code stays where new processes look for it.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import typer

from ensue.cli.terminal import EXIT_FINDINGS, counted, say
from ensue.events.event import Event
from ensue.events.kernels.kept import folder_of_loops, kept_loops
from ensue.subscriptions import Index

_TYPES = """
eventtype Step { attribute string host; attribute long n; attribute double x; attribute boolean ok;
    attribute timestamp at; };
eventtype Found { attribute string host; attribute long n; attribute double x; };
"""
_RULES = (
    "Found correlation R(Step a, Step b, Step c) a ; b ; c within 1 min by host"
    " { case true: push new Found { host = c.host, n = a.n }; }",
    "Found correlation R(Step a where n > 3 AND ok, Step b where x < 0.5) l1:(a + b) | l2:(b ; a)"
    " within 10 s by host bind first"
    " { case l1: push new Found { host = b.host }; case l2: push new Found { host = a.host }; }",
    "Found correlation R(Step a where host LIKE 'h1%') a{5} { case true: push new Found { }; }",
    "Found correlation R(Step a, Step b) (a | b) ; b || b within 5 s by host"
    " { case true: push new Found { host = b.host }; }",
    "Found correlation R(Step a) a ; timeout(3 s) by host unless a"
    " { case true: push new Found { host = a.host, x = a.x }; }",
    "Found correlation R(Step a, Step b) a ; b within 1 h by host bind latest keep last"
    " having b.x < a.x { case true: push new Found { host = b.host, x = b.x }; }",
    "Found correlation R(Step a) a within 20 s by host keep all"
    " having count(a) >= 2 AND sum(a.n) > 1 AND distinct(a.n) > 1 AND avg(a.x) > 0"
    " { case true: push new Found { host = a.host, n = count(a), x = max(a.x) }; }",
    "Found correlation R(Step a, every 2 s t) a + t by host"
    " { case true: push new Found { host = a.host }; }",
    "Found correlation R(Step a, deadline 4 s d) d by host { case true: push new Found { }; }",
    "Found ecl R(Step a where n > 2, Step b where n < 9) by host"
    " { repeat { notify { sequential { a, accumulate { a, b } } } } }",
    "Found ecl R(Step a) by host { repeat { notify { do { timeout(3 s) } unless { a } } } }",
)
_MANY = 40
"""So many rules are walked in loops also event by event, and so many filters are looked up."""
_EVENTS = 4000
_FORMATS = (".jsonl", ".csv", ".parquet")


def warm() -> None:
    """Compile what the first runs would compile, so that none has to wait for it.

    Fast loops are compiled for the machine. The first run that needs one compiles it, which takes
    some seconds, and keeps it for later runs: in the folder NUMBA_CACHE_DIR if that is set, beside
    the installed files, or, where these cannot be written, in the cache folder of the user. This
    command compiles them all at once, as at the end of an installation or in an image.

    \b
    Example:
      ensue warm
      NUMBA_CACHE_DIR=/var/cache/ensue ensue warm

    \b
    Exit codes:
      0  everything is compiled
      1  there is no folder in which compiled code can be kept
    """
    say("compiling for this machine; this takes a minute or so", "dim")
    begun, before = time.monotonic(), kept_loops()
    with tempfile.TemporaryDirectory(prefix="ensue-warm-") as folder:
        _run_everything(Path(folder))
    place = folder_of_loops()
    if place is None:
        say(
            "compiled code cannot be kept, since no cache folder can be written: set"
            " `NUMBA_CACHE_DIR` to a folder that can",
            "red",
        )
        raise typer.Exit(EXIT_FINDINGS)
    new = kept_loops() - before
    if new:
        took = time.monotonic() - begun
        say(f"{counted(new, 'loop')} compiled in {took:.0f} s, and kept in `{place}`", "dim")
    else:
        say(f"everything is compiled, and kept in `{place}`", "dim")


def _run_everything(folder: Path) -> None:
    """Run libraries of every form over files of every format."""
    rows = [_row(number) for number in range(_EVENTS)]
    files = [_written(folder / f"events{ending}", rows) for ending in _FORMATS]
    # Out of the order of their times, so that they are sorted.
    files.append(_written(folder / "unordered.jsonl", rows[::-1]))
    for number, text in enumerate(_RULES):
        library = folder / f"rules{number}.cor"
        library.write_text(_TYPES + text)
        # How the values of a file are held matters less to rules than to what reads the file.
        for file in files if number < 2 else files[:1]:
            _run(library, file, folder)
    together = folder / "together.cor"
    names = [f"R{number}" for number in range(len(_RULES))]
    texts = [
        text.replace("correlation R(", f"correlation {name}(").replace("ecl R(", f"ecl {name}(")
        for name, text in zip(names, _RULES, strict=True)
    ]
    together.write_text(_TYPES + "\n".join(texts))
    for file in files:
        _run(together, file, folder)
    many = folder / "many.cor"
    many.write_text(_TYPES + "\n".join(_many_rules()))
    for engine in ("step", "batch"):
        _run(many, files[0], folder, engine)
    _look_up_filters(rows)


def _many_rules() -> Iterator[str]:
    """Rules with the shapes that are walked together, each over values of its own."""
    push = "case true: push new Found { host = b.host };"
    for number in range(_MANY):
        first, second = f"Step a where n = {number % 12}", f"Step b where n > {number % 9}"
        window = f"within {number % 5 + 1} s" if number % 2 else ""
        yield f"Found correlation R{number}({first}, {second}) a ; b {window} by host {{ {push} }}"
        absence = f"do {{ timeout({number % 5 + 1} s) }} unless {{ b }}"
        told = f"repeat {{ notify {{ sequential {{ a, {absence} }} }} }}"
        yield f"Found ecl E{number}({first}, {second}) by host {{ {told} }}"


def _look_up_filters(rows: list[dict[str, Any]]) -> None:
    """Find the filters of many subscribers that events match, as a server does."""
    import pyarrow as pa

    index = Index()
    for number in range(_MANY * _MANY):
        index.add(number, f"n > {number % 7} AND n < {number % 90} AND x >= {number / 1000}")
    publications = [{name: row[name] for name in ("host", "n", "x", "ok")} for row in rows]
    for number, data in enumerate(publications[: _MANY * 3]):
        index.match(Event.of("Step", time=0, id=str(number), source="warm", data=data))
    index.match_columns(pa.Table.from_pylist(publications))
    for number in range(0, _MANY * _MANY, 3):
        index.remove(number)


def _row(number: int) -> dict[str, Any]:
    second = f"{number % 60:02d}"
    at = f"2024-05-06T{7 + number // 3600:02d}:{number // 60 % 60:02d}:{second}.5Z"
    host = f"h{number * 7 % 30}"
    return {
        "id": f"e{number}",
        "source": "warm",
        "type": "Step",
        "time": at,
        "host": host,
        "n": number % 12,
        "x": number % 10 / 10,
        "ok": number % 3 > 0,
        "at": at,
    }


def _written(path: Path, rows: list[dict[str, Any]]) -> Path:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    if path.suffix == ".jsonl":
        context = ("id", "source", "type", "time")
        events = [
            {
                **{name: row[name] for name in context},
                "data": {name: value for name, value in row.items() if name not in context},
            }
            for row in rows
        ]
        path.write_text("".join(f"{json.dumps(each)}\n" for each in events))
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(pa.Table.from_pylist(rows), path)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def _run(library: Path, file: Path, folder: Path, engine: str = "batch") -> None:
    from ensue.cli.commands.run import run

    for out, lateness in (("found.jsonl", None), ("found.csv", None), ("late.jsonl", "5 s")):
        with redirect_stderr(StringIO()):
            run(
                [library],
                events=[str(file)],
                out=str(folder / out),
                engine=engine,
                lateness=lateness,
                max_jump="none",
            )
