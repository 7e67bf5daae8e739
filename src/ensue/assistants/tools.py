"""What an assistant can do with rules: check, explain, compare, test and run them, ask a history.

In come plain values as the protocol carries them, out go plain values; mistakes are `EnsueError`s
with what to do about them. Each answer is cut to the rows and bytes of its `Reach`, and says so.
Functions here know nothing of the protocol, and run in a process of their own
(`ensue.assistants.worker`), which is ended where one takes too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ensue.assistants.reach import EVENT_BYTES, LIBRARY_BYTES, Reach
from ensue.casefile import (
    Case,
    find_case_files,
    read_cases,
    render,
    run_case,
    with_parameters,
)
from ensue.engine.changing import checked_source
from ensue.engine.costs import cost_of
from ensue.engine.run import Run
from ensue.errors import CaseError, EventError, LibraryError, LimitError, UsageError
from ensue.events.cloudevents import decode, encode
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.mapping import Mapping as ColumnMapping
from ensue.events.records.reading import read_events
from ensue.events.times import parse_time
from ensue.explaining.comparing import answer
from ensue.explaining.explanation import drawing, explanation
from ensue.explaining.findings import all_findings, quick_findings
from ensue.lang.diagnostics import Diagnostic, did_you_mean
from ensue.lang.parsing.files import read_source
from ensue.lang.source import Source
from ensue.library import Library
from ensue.machine.analyses.comparison import compare as compare_rules

if TYPE_CHECKING:
    from ensue.knowledge import Ontology

Answer = dict[str, Any]
MOST_FINDINGS = 50
MOST_REFUSED_SHOWN = 10
EXPLAINED_EVENTS = 2_000
"""Up to so many events it is told why a rule has put nothing out."""


@dataclass(frozen=True, slots=True)
class GivenRules:
    """A library: its text, or the paths of its files, and values for its parameters."""

    library: str | None = None
    files: list[str] | None = None
    parameters: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GivenEvents:
    """Events: a list of CloudEvents, or a file of them with what its columns are."""

    events: list[dict[str, Any]] | None = None
    events_file: str | None = None
    columns: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class GivenSpan:
    """A stretch of time, in RFC 3339; `until` is the first time that no longer counts."""

    since: str | None = None
    until: str | None = None

    @property
    def begin(self) -> int | None:
        return _time("since", self.since)

    @property
    def end(self) -> int | None:
        return _time("until", self.until)


def _time(name: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise UsageError(f"`{name}`: {error}") from None


# --- libraries -----------------------------------------------------------------------------------


def _source(reach: Reach, rules: GivenRules) -> Source:
    """The text of a library, as it was given or from its files."""
    library, files = rules.library, rules.files
    if (library is None) == (not files):
        raise UsageError("give either `library`, its text, or `files`, the paths of its files")
    if library is not None:
        if len(library.encode()) > LIBRARY_BYTES:
            raise UsageError(f"the library is larger than {LIBRARY_BYTES:,} bytes: give a part")
        return Source.of(library, "library")
    paths = [reach.file(each, LIBRARY_BYTES) for each in files or ()]
    source, problems = read_source(paths, inside=reach.roots)
    if problems:
        checked_source(source, parameters=rules.parameters, problems=problems)
    named = {str(path): each for path, each in zip(paths, files or (), strict=True)}
    texts = tuple((named.get(name, name), text) for name, text in source.files)
    return Source(texts, has_imports=source.has_imports)


@lru_cache(maxsize=1)
def _ontology(files: tuple[Path, ...]) -> Ontology | None:
    """What rules ask, read once in the process of the tools."""
    if not files:
        return None
    from ensue.knowledge import Ontology

    return Ontology.load(*files)


def _library(reach: Reach, rules: GivenRules) -> Library:
    found = quick_findings(_source(reach, rules), _ontology(reach.ontology), rules.parameters)
    if found.library is None:
        raise LibraryError(found.diagnostics)
    return found.library


def _rule(library: Library, name: str) -> Any:
    if name not in library.correlations.names:
        hint = did_you_mean(name, library.correlations.names)
        raise UsageError(f"there is no correlation `{name}` in the library; {hint}")
    return library.correlations[name]


def _finding(found: Diagnostic) -> Answer:
    return {
        "severity": found.severity,
        "code": found.code,
        "message": found.message,
        "hint": found.hint,
        "file": found.file,
        "line": found.line,
        "column": found.column,
        "text": found.text[:300],
    }


def check(reach: Reach, rules: GivenRules) -> Answer:
    """All findings about a library, and what its rules keep for each key."""
    seconds = min(5.0, reach.seconds / 3)
    ontology = _ontology(reach.ontology)
    found = all_findings(_source(reach, rules), seconds, ontology, rules.parameters)
    errors = sum(each.severity == "error" for each in found.diagnostics)
    return {
        "good": found.library is not None,
        "errors": errors,
        "warnings": len(found.diagnostics) - errors,
        "findings": [_finding(each) for each in found.diagnostics[:MOST_FINDINGS]],
        "left_out": max(0, len(found.diagnostics) - MOST_FINDINGS),
        "rules": list(found.library.correlations.names) if found.library is not None else [],
        "costs": list(islice(_costs(found.library), MOST_FINDINGS)),
    }


def _costs(library: Library | None) -> Iterator[str]:
    for rule in library.correlations if library is not None else ():
        try:
            yield str(cost_of(library.checked, rule)) if library is not None else ""
        except LimitError as error:
            yield f"`{rule.name}` cannot run: {error}"


def explain(
    reach: Reach,
    rules: GivenRules,
    rule: str,
    format: Literal["text", "json", "mermaid", "dot"],  # noqa: A002
) -> Answer:
    """A rule in words, or its machine as text of a format."""
    loaded = _library(reach, rules)
    found = _rule(loaded, rule)
    if format == "text":
        text = "\n".join(explanation(loaded, found))
    else:
        text = drawing(loaded, found, format, False)
    return {"text": _cut(text, reach.most_bytes), "rule": rule}


def compare(reach: Reach, rules: GivenRules, first: str, second: str) -> Answer:
    """How two rules stand to each other, with a witness."""
    loaded = _library(reach, rules)
    one, two = _rule(loaded, first), _rule(loaded, second)
    found = compare_rules(one, two, loaded.checked.types, seconds=reach.seconds * 0.8)
    text = "\n".join(answer(first, second, found))
    return {
        "relation": found.relation,
        "text": _cut(text, reach.most_bytes),
        "notes": list(found.notes),
    }


# --- cases ---------------------------------------------------------------------------------------


def test(
    reach: Reach,
    cases: str | None,
    files: list[str] | None,
    only: str | None,
    parameters: dict[str, Any] | None,
) -> Answer:
    """Golden cases, run; failing cases are shown side by side with what was expected."""
    if (cases is None) == (not files):
        raise UsageError("give either `cases`, TOML text, or `files`, paths of case files")
    with TemporaryDirectory() as folder:
        if cases is not None:
            path = Path(folder, "cases.toml")
            path.write_text(cases, "utf-8")
            found = _read_cases([path], "cases.toml", folder)
        else:
            given = [reach.inside(each) for each in files or ()]
            paths = [each for path in given for each in find_case_files(path)]
            checked = [reach.file(str(each), LIBRARY_BYTES) for each in paths]
            found = _read_cases(checked, "", "")
        wanted = [each for each in found if only is None or only in each.name]
        if not wanted:
            raise UsageError(f"no case has `{only}` in its name; there are {len(found)} cases")
        for case in wanted:
            _require_reach(reach, case, folder)
        results = [run_case(each) for each in with_parameters(wanted, parameters or {})]
    failures = [each for each in results if not each.passed]
    told = ["\n".join(render(each)).replace(f"{folder}/", "") for each in failures]
    return {
        "passed": len(results) - len(failures),
        "failed": len(failures),
        "failures": [_cut(each, 8_000) for each in told[:MOST_FINDINGS]],
        "left_out": max(0, len(told) - MOST_FINDINGS),
    }


def _read_cases(paths: Sequence[Path], name: str, folder: str) -> list[Case]:
    try:
        return [case for path in paths for case in read_cases(path)]
    except CaseError as error:
        raise CaseError(
            str(error).replace(f"{folder}/{name}", name) if folder else str(error)
        ) from None


def _require_reach(reach: Reach, case: Case, folder: str) -> None:
    """A case names files of its own, which must lie where the assistant may read."""
    named = [case.library] if isinstance(case.library, Path) else []
    named += [Path(each) for each in (case.recorded.paths if case.recorded is not None else ())]
    for path in named:
        if folder and path.resolve().is_relative_to(Path(folder).resolve()):
            continue
        reach.file(str(path), EVENT_BYTES)
    if isinstance(case.library, Path):
        _, problems = read_source([case.library], inside=reach.roots)
        if problems != read_source([case.library])[1]:
            raise LibraryError(problems)


# --- runs ----------------------------------------------------------------------------------------


def run(
    reach: Reach,
    rules: GivenRules,
    given: GivenEvents,
    until: str | None,
    limit: int,
) -> Answer:
    """What a library puts out over some events, and why a rule has put out nothing."""
    rows = reach.rows(limit)
    loaded = _library(reach, rules)
    if (given.events is None) == (given.events_file is None):
        raise UsageError("give either `events`, a list of CloudEvents, or `events_file`, a path")
    refused: list[str] = []
    read: list[Event] = []
    end = _time("until", until)
    for record in _records(reach, loaded, given):
        if isinstance(record, Event):
            read.append(record)
        else:
            refused.append(f"event {record.number}: {'; '.join(record.problems)}")
    outputs = loaded.run(read, engine="step" if len(read) < 20_000 else "auto", until=end)
    shown, count = _shown(outputs, rows, reach.most_bytes)
    putting_out = {each["correlation"] for each in shown}
    silent = [each for each in loaded.correlations.names if each not in putting_out]
    return {
        "events_read": len(read),
        "refused": refused[:MOST_REFUSED_SHOWN],
        "refused_count": len(refused),
        "outputs": shown,
        "outputs_count": count,
        "left_out": count - len(shown),
        "why_not": _why_not(loaded, read, silent, end) if count == len(shown) else [],
    }


def _records(reach: Reach, library: Library, given: GivenEvents) -> Iterator[Event | Rejected]:
    types = library.checked.types
    if given.events_file is not None:
        path = reach.file(given.events_file, EVENT_BYTES)
        yield from read_events(path, types, mapping=ColumnMapping.of(given.columns or {}))
        return
    for number, event in enumerate(given.events or (), 1):
        try:
            line = msgspec.json.encode({"id": str(number), "source": "assistant"} | event)
            yield conform(decode(line), types)
        except EventError as error:
            yield Rejected(number, msgspec.json.encode(event), error.problems)


def _why_not(
    library: Library, events: Sequence[Event], silent: Sequence[str], until: int | None
) -> list[str]:
    """What the rules waited for that have put nothing out, by the definitions."""
    if not silent or len(events) > EXPLAINED_EVENTS:
        return []
    told = library.start(explain=True)
    for event in sorted(events, key=lambda each: each.time):
        told.push(event)
    told.finish(until)
    return [_cut(_reason(told, name), 1_000) for name in silent[:MOST_REFUSED_SHOWN]]


def _reason(run: Run, name: str) -> str:
    nearest = run.nearest(name, 1)
    return f"`{name}`: {nearest[0] if nearest else run.why(name)}"


# --- histories -----------------------------------------------------------------------------------


def history_find(reach: Reach, history: str, filter: str, span: GivenSpan, limit: int) -> Answer:  # noqa: A002
    """Stored events that match a filter, by start and then by arrival."""
    from ensue.history import History

    rows = reach.rows(limit)
    with History.open(reach.history(history), ontology=_ontology(reach.ontology)) as store:
        found = islice(store.scan(filter, span.begin, span.end), rows + 1)
        shown, count = _shown(found, rows, reach.most_bytes)
    return {"events": shown, "more": count > len(shown)}


def history_replay(
    reach: Reach,
    history: str,
    rules: GivenRules,
    filter: str | None,  # noqa: A002
    span: GivenSpan,
    limit: int,
) -> Answer:
    """What a library or a filter would have given over a span of a history."""
    from ensue.history import History

    rows = reach.rows(limit)
    if filter is not None and rules != GivenRules():
        raise UsageError("give a library or `filter`, and not both")
    what = filter if filter is not None else _library(reach, rules)
    with History.open(reach.history(history), ontology=_ontology(reach.ontology)) as store:
        shown, count = _shown(store.backtest(what, span.begin, span.end), rows, reach.most_bytes)
    return {"outputs": shown, "outputs_count": count, "left_out": count - len(shown)}


# --- answers -------------------------------------------------------------------------------------


def _shown(events: Iterable[Event], rows: int, most_bytes: int) -> tuple[list[Answer], int]:
    """The first events as plain values, as far as rows and bytes allow, and how many there are."""
    shown: list[Answer] = []
    count = size = 0
    for event in events:
        count += 1
        line = encode(event)
        size += len(line)
        if len(shown) < rows and size <= most_bytes:
            shown.append(msgspec.json.decode(line))
    return shown, count


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n... {len(text) - most:,} more characters"


TOOLS: Mapping[str, Callable[..., Answer]] = {
    "check": check,
    "explain": explain,
    "compare": compare,
    "test": test,
    "run": run,
    "history_find": history_find,
    "history_replay": history_replay,
}
