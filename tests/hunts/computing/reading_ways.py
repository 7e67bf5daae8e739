"""Whatever the options, the format and the rule, a run in columns gives what a run by itself gives.

Every round draws a library, a file of events (CloudEvents, plain objects or CSV; hosts of several
kinds, nulls, names that are missing or belong to another type, escapes, nested values, broken
lines, times in no order) and options, and runs the command on the engine `batch` and on `step`: the
outputs, the late events, the dead letters and the summary have to be the same. The events of all
chunks are made singly, too, and have to be those of the reader of single records.

The seconds that each way of asking takes beside the plain run are what the round returns, in
milliseconds; a way that takes more than `MOST_TIMES` times the plain run over the same number of
events, and more than `LEAST_SECONDS` longer, is a finding.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from typer.testing import CliRunner

import ensue
from ensue.cli import app
from ensue.cli.event_run import EventRun
from ensue.engine.timing.jumps import max_jump
from ensue.events.mapping import Mapping as ColumnMapping
from ensue.library import duration_microseconds
from tests.cli.followed import Runs, pieces_of

SHORT = (1, 2, 3)

MOST_TIMES = 6
LEAST_SECONDS = 1.0

TYPES = """
eventtype A { attribute %(host)s host; attribute double value; };
eventtype B { attribute %(host)s host; attribute long count; };
eventtype C { attribute string note; attribute %(host)s host; };
eventtype Found { attribute string note; attribute long count; };
"""
RULES = (
    "Found correlation Chain (A a, B b, C c) a ; b ; c within %(within)s by host"
    " { case true: push new Found { note = c.note, count = b.count }; }",
    "Found correlation Sum (A a, B b where count > 3) a ; b within %(within)s by host"
    " { case true: push new Found { note = a.id, count = b.count }; }",
    "A correlation On (A a where value > 90, C c where note LIKE '%%x%%') a + c within %(within)s"
    " { case true: push a; }",
    "Found correlation Quiet (A a) a ; timeout(%(within)s) unless a by host"
    " { case true: push new Found { note = a.id }; }",
)
BEGIN = datetime(2024, 5, 6, tzinfo=UTC)
NOTES = ("x", "", "a x\\b", 'say "x"', "line\nbreak", "\u00e9x", "ends:", None)


def hunt(seed: int) -> Mapping[str, int]:
    draw = Random(seed)
    tried = Counter[str]()
    with TemporaryDirectory() as name:
        folder = Path(name)
        library = folder / "rules.cor"
        of_host = draw.choice(["long", "string"])
        rules = draw.sample(RULES, draw.randint(1, 3))
        within = {"within": draw.choice(["5 s", "1 min"])}
        library.write_text(TYPES % {"host": of_host} + "\n".join(rule % within for rule in rules))
        events = drawn_events(draw, of_host)
        form = draw.choice(["objects", "cloudevents", "mapped", "csv"])
        path, options = written(draw, folder, events, form)
        options += drawn_options(draw)
        found = {
            engine: ran(folder, [str(library), "-e", str(path), *options, "--engine", engine])
            for engine in ("batch", "step")
        }
        for what, one in found["batch"].items():
            other = found["step"][what]
            if one != other:
                raise AssertionError(
                    f"{what} of `batch` and `step` differ with {' '.join(options)} over {form}:\n"
                    f"{first_difference(one, other)}"
                )
        check_followed(draw, folder, library, path, options)
        tried["records"] += len(events)
        tried["outputs"] += found["step"]["outputs"].count("\n")
        tried["refused"] += found["step"]["dead letters"].count("\n")
        tried["late"] += found["step"]["late events"].count("\n")
        tried |= seconds_beside_plain(draw, folder, library, events, of_host)
    return tried


def check_followed(
    draw: Random, folder: Path, library: Path, path: Path, options: Sequence[str]
) -> None:
    """Follow the file as it grows piece by piece: in columns as by single events."""
    given = dict(zip(options[::2], options[1::2], strict=False))
    if path.suffix == ".gz":
        return
    lateness = duration_microseconds(given.get("--lateness", "0 s"))
    jump = given.get("--max-jump", "none")
    mapping = ColumnMapping.parse(given["--columns"]) if "--columns" in given else None
    loaded = ensue.load(library)
    allowed = max_jump(loaded.checked, jump)
    runs = Runs(folder, loaded, lateness, mapping, allowed)
    whole = path.read_bytes()
    pieces = {f"followed{path.suffix}": pieces_of([whole], draw.randint(1, 5))}
    idle = draw.random() < 0.5
    in_columns = runs.after(pieces, 1, EventRun.snapshot if idle else lambda _: None)
    if runs.after(pieces, None) != in_columns:
        raise AssertionError(f"followed in columns and singly differ with {' '.join(options)}")


def drawn_events(draw: Random, of_host: str) -> list[dict[str, Any]]:
    """Events of a few types, most of them in order."""
    at = BEGIN
    events: list[dict[str, Any]] = []
    is_messy = draw.random() < 0.6
    for number in range(draw.randint(50, 400)):
        at += timedelta(milliseconds=draw.randrange(1, 4000))
        moment = at
        if is_messy and draw.random() < 0.1:
            moment -= timedelta(seconds=draw.randrange(1, 20))
        host: Any = draw.randrange(4)
        host = host if of_host == "long" else f"h{host}"
        if is_messy and draw.random() < 0.05:
            host = draw.choice([None, "7", 1.0, True, 2**64, ["a"]])
        type_ = draw.choice("AABBCCD")
        data: dict[str, Any] = {"host": host}
        if type_ in "AD" or draw.random() < 0.1:
            data["value"] = draw.choice([1, 95, 97.5, 0.1, -0.0])
        if type_ in "BD" or draw.random() < 0.1:
            data["count"] = draw.choice([1, 5, 7.0, 2**40])
        if type_ == "C" or draw.random() < 0.1:
            data["note"] = draw.choice(NOTES)
        if draw.random() < 0.1:
            data["more"] = draw.choice([1, "x", None, {"a": [1, None]}, [{}], 1.5])
        event: dict[str, Any] = {
            "id": f"e{number}",
            "type": type_,
            "time": shown(draw, moment),
            "data": data,
        }
        if is_messy and draw.random() < 0.03:
            event[draw.choice(["id", "type", "time"])] = draw.choice([None, 5, "", "soon"])
        events.append(event)
    return events


def shown(draw: Random, moment: datetime) -> str:
    text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return text if draw.random() < 0.9 else text.replace("T", " ").replace("Z", "+00:00")


def written(
    draw: Random, folder: Path, events: Sequence[Mapping[str, Any]], form: str
) -> tuple[Path, list[str]]:
    """The file of events in a form, and the options that it needs."""
    lines: list[bytes] = []
    options: list[str] = []
    if form == "csv":
        names = ["id", "type", "time", "host", "value", "count", "note"]
        rows = [",".join(names)]
        for event in events:
            parts = {**event, **event["data"]}
            rows.append(",".join(cell(parts.get(name)) for name in names))
        lines = [row.encode() for row in rows]
    for event in events if form != "csv" else ():
        if form == "objects":
            data = event["data"]
            members = {name: value for name, value in event.items() if name != "data"} | data
            options = ["--columns", "host=host"]
        else:
            members = {"source": "s", **event}
            options = ["--columns", "id=id"] if form == "mapped" else []
        lines.append(json.dumps(members, ensure_ascii=draw.random() < 0.5).encode())
    if form != "csv" and draw.random() < 0.4:
        for _ in range(draw.randint(1, 5)):
            lines.insert(
                draw.randrange(len(lines) + 1),
                draw.choice(
                    [b"", b"  ", b"{", b"null", b"[1]", b'{"a":1,"a":2}', b"\xff", b"{}{}"]
                ),
            )
    text = draw.choice([b"\n", b"\r\n"] if form != "csv" else [b"\n"]).join(lines) + b"\n"
    path = folder / ("events.csv" if form == "csv" else "events.jsonl")
    if draw.random() < 0.2:
        path = path.with_name(f"{path.name}.gz")
        path.write_bytes(gzip.compress(text))
    else:
        path.write_bytes(text)
    return path, options


def cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\n\r]', text) else text


def drawn_options(draw: Random) -> list[str]:
    options: list[str] = []
    if draw.random() < 0.5:
        options += ["--lateness", draw.choice(["0 s", "3 s", "30 s"])]
    if draw.random() < 0.2:
        options += ["--until", "2024-05-08T00:00:00Z"]
    if draw.random() < 0.2:
        options += ["--max-jump", draw.choice(["3 s", "1 min", "none"])]
    if draw.random() < 0.1:
        options += ["--strict"]
    return options


def ran(folder: Path, arguments: Sequence[str]) -> dict[str, str]:
    """What a run puts out, keeps and says, without what is said of refused records."""
    late, dead = folder / "late.jsonl", folder / "dead.jsonl"
    for path in (late, dead):
        path.unlink(missing_ok=True)
    given = ["run", *arguments, "--late", str(late), "--dead-letter", str(dead)]
    result = CliRunner().invoke(app, given, prog_name="ensue")
    if "this is a bug" in result.stderr:
        raise AssertionError(f"{' '.join(arguments)}: {result.stderr}")
    # A run that is stopped has written what it has by then.
    is_stopped = "--strict" in arguments or result.exit_code == 2
    summary = [each for each in result.stderr.splitlines() if re.search(r"events? read", each)]
    return {
        "outputs": "" if is_stopped else result.stdout,
        "late events": late.read_text() if late.exists() and not is_stopped else "",
        "dead letters": dead.read_text("utf-8", "backslashreplace") if dead.exists() else "",
        "summary": "" if is_stopped else "\n".join(summary),
        "exit code": str(result.exit_code),
    }


def first_difference(one: str, other: str) -> str:
    """The first lines that differ."""
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    differing = next(((a, b) for a, b in pairs if a != b), ("", ""))
    counts = f"{one.count(chr(10))} and {other.count(chr(10))} lines"
    return f"{counts}; {differing[0][:500]}\nand\n{differing[1][:500]}"


def seconds_beside_plain(
    draw: Random, folder: Path, library: Path, events: Sequence[Mapping[str, Any]], of_host: str
) -> Mapping[str, int]:
    """The milliseconds of a plain run over many events, and of one that is asked otherwise."""
    plain = folder / "plain.jsonl"
    lines, odd = [], []
    for number in range(20_000):
        at = BEGIN + timedelta(milliseconds=10 * number)
        host: Any = number % 100 if of_host == "long" else f"h{number % 100}"
        members = {
            "id": f"e{number}",
            "type": "ABC"[number % 3],
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "host": host,
            "value": 1.5,
            "count": number % 7,
            "note": "n",
        }
        lines.append(json.dumps(members))
        odd.append(json.dumps({**members, "host": str(host)} if number % 4 == 0 else members))
    plain.write_text("\n".join(lines))
    mixed = folder / "mixed.jsonl"
    mixed.write_text("\n".join(odd))
    shuffled = folder / "shuffled.jsonl"
    shuffled.write_text("\n".join(draw.sample(lines, len(lines))))
    columns = ["--columns", "host=host", "--engine", "batch"]
    ways = {
        "plain": (plain, columns),
        "lateness": (plain, [*columns, "--lateness", "5 s"]),
        "shuffled": (shuffled, columns),
        "mixed": (mixed, columns),
        "step": (plain, ["--columns", "host=host", "--engine", "step"]),
    }
    way = draw.choice([name for name in ways if name != "plain"])
    took: dict[str, float] = {}
    for name in ("plain", way, "plain", way):
        path, options = ways[name]
        begin = process_time()
        ran(folder, [str(library), "-e", str(path), *options])
        took[name] = min(process_time() - begin, took.get(name, 1e9))
    if took[way] > MOST_TIMES * took["plain"] and took[way] - took["plain"] > LEAST_SECONDS:
        raise AssertionError(
            f"`{way}` took {took[way]:.2f} s of a processor where the plain run takes"
            f" {took['plain']:.2f} s"
        )
    return {f"ms of {name}": round(1000 * seconds) for name, seconds in took.items()}
