"""Hints after a run: an input that was refused completely, and types and keys that no rule can use.

In come the events that were read (`SeenEvents`) and the problems of refused records; out go
sentences for the user, each with a count and an example, or None if there is nothing to say. They
do not change the exit code, since the cause may be intended: an event of a type that no rule reads
still moves the clock.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ensue.cli.terminal import counted, listed
from ensue.errors import EventError
from ensue.events.cloudevents import read_object
from ensue.events.conformance import fits
from ensue.events.event import Event
from ensue.events.mapping.values import WHOLE_FACTORS
from ensue.events.nesting import path_of, value_at
from ensue.events.types import ValueType
from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.asked import attributes_asked
from ensue.lang.derived.wanted import types_read, unusable_keys
from ensue.lang.diagnostics import close_match, did_you_mean

if TYPE_CHECKING:
    from ensue.engine.batch.input.batches import Batch


@dataclass
class SeenEvents:
    """How many events of each type were read, and the first of each type.

    `absent` are the attributes that rules ask for and no event has had so far, by types of events.
    `names` are what values of events are called, as long as something was absent, and `in_1970` is
    the number of events in that year.
    """

    types: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Event] = field(default_factory=dict)
    absent: dict[str, set[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    in_1970: int = 0

    @classmethod
    def of(cls, library: CheckedLibrary) -> Self:
        """What is to be found out for the rules of a library."""
        absent: dict[str, set[str]] = {}
        for asked in attributes_asked(library).values():
            for name, types in asked.items():
                for each in types:
                    absent.setdefault(each, set()).add(name)
        return cls(absent=absent)

    def take(self, event: Event) -> None:
        self.types[event.type] += 1
        if event.type not in self.examples:
            self.examples[event.type] = event
        if event.time < END_OF_1970 and event.time >= 0:
            self.in_1970 += 1
        absent = self.absent.get(event.type)
        if absent:
            self.names.update(event.attributes)
            absent -= {n for n in absent if value_at(event.attributes, n)[1] is not None}

    def take_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self.take(event)

    def take_batch(self, batch: Batch, refused: Any = ()) -> None:
        """Take the events of a batch of the engine `batch`, but for some rows."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        types, times = batch.column(("type",)).values, batch.times
        if len(refused):
            is_taken = np.ones(len(batch), np.bool_)
            is_taken[refused] = False
            types, times = pc.if_else(pa.array(is_taken), types, None), times[is_taken]
        for each in pc.value_counts(types):
            name = each["values"].as_py()
            if name is None:
                continue
            self.types[name] += each["counts"].as_py()
            if name not in self.examples:
                row = int(np.argmax(np.asarray(pc.fill_null(pc.equal(types, name), False))))
                self.examples[name] = batch.event(row)
            if absent := self.absent.get(name):
                self.names.update(batch.names)
                absent -= {n for n in absent if _has_value(batch, types, name, n)}
        if len(times) and times.min() < END_OF_1970:
            self.in_1970 += int(((times >= 0) & (times < END_OF_1970)).sum())


def _has_value(batch: Batch, types: Any, type_: str, attribute: str) -> bool:
    """Whether an event of a type has a value of an attribute."""
    import numpy as np
    import pyarrow.compute as pc

    missing = batch.column(path_of(attribute)).missing
    if missing is None or missing.all():
        return missing is None
    is_type = np.asarray(pc.fill_null(pc.equal(types, type_), False))
    return bool((is_type & ~missing).any())


END_OF_1970 = 365 * 86_400 * 1_000_000
_MOST_SEEN = 12


def about_absent(
    seen: SeenEvents,
    library: CheckedLibrary,
    silent: Collection[str],
    none: str = "no event",
    others: Collection[str] = (),
) -> Iterator[str]:
    """For rules without outputs: the attributes that they ask for, and no event had.

    Of `others`, which have outputs, only attributes are told that seem to be misspelt. `none` says
    which events were seen, if not all were.
    """
    for rule, asked in attributes_asked(library).items():
        if rule not in silent and rule not in others:
            continue
        absent = []
        had: dict[str, None] = {}
        for name, types in asked.items():
            come = [each for each in types if each in seen.types]
            if come and all(name in seen.absent.get(each, ()) for each in come):
                absent.append(name)
                examples = [seen.examples[each] for each in come if each in seen.examples]
                had |= dict.fromkeys(n for each in examples for n in _names_in(each.attributes))
        # An event may have names that the first of its type had not.
        more = [*had, *sorted(seen.names.difference(had, asked))]
        if rule not in silent:
            absent = [name for name in absent if close_match(name, more)]
        if absent:
            meant = [found for name in absent if (found := close_match(name, more))]
            shown = listed([*had], _MOST_SEEN) if had else "no attribute at all"
            tail = f"did you mean {_all_of(meant)}?" if meant else f"they had {shown}"
            yield f"{none} had {_all_of(absent)}, which `{rule}` reads; {tail}"


def _all_of(names: Sequence[str]) -> str:
    *first, last = [f"`{each}`" for each in names]
    return f"{', '.join(first)} and {last}" if first else last


def _names_in(attributes: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The names of attributes with values, also inside of objects."""
    for name, value in attributes.items():
        if isinstance(value, Mapping) and prefix.count(".") < _DEEPEST:
            yield from _names_in(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}"


def about_1970(seen: SeenEvents, unit: str | None) -> str | None:
    """For times that most likely are numbers in another unit."""
    read = seen.types.total()
    if unit not in WHOLE_FACTORS and unit != "ns":
        return None
    if not read or seen.in_1970 * 2 <= read:
        return None
    others = ", ".join(f"`{each}`" for each in ("s", "ms", "us", "ns") if each != unit)
    lie = "lies" if read == 1 else "lie"
    return (
        f"{seen.in_1970:,} of {counted(read, 'event')} {lie} in 1970, since `time` is read in"
        f" `{unit}`: its numbers may be in {others}"
    )


def about_types(
    seen: Mapping[str, int], library: CheckedLibrary, found_something: bool
) -> str | None:
    """For events that no rule reads: all of them, misspelled types, or some of the events."""
    declared = [each.name for each in library.types]
    read = types_read(library)
    unread = sorted(name for name in seen if name not in read)
    if not unread or not declared:
        return None
    unknown = [name for name in unread if name not in library.types]
    nearest = next((each for each in unknown if close_match(each, declared)), None)
    if len(unknown) == len(seen) and not found_something:
        return (
            "no event has a type that the library declares; their types are"
            f" {listed(unknown)}; {did_you_mean(nearest or unknown[0], declared)}"
        )
    count = sum(seen[name] for name in unread)
    shown = nearest or max(unread, key=lambda name: seen[name])
    kinds = f"of {len(unread)} types, as `{shown}`," if len(unread) > 1 else f"of type `{shown}`"
    misspelled = f"; {did_you_mean(nearest, declared)}" if nearest else ""
    is_read = "is" if count == 1 else "are"
    return f"{counted(count, 'event')} {kinds} {is_read} read by no rule{misspelled}"


def about_unread(count: int, example: str | None) -> str:
    """As `about_types`, if only the count and one of the types are known."""
    is_read = "is" if count == 1 else "are"
    return f"{counted(count, 'event')}, as of type `{example}`, {is_read} read by no rule"


def about_keys(
    without_key: Mapping[str, int], examples: Mapping[str, Event], library: CheckedLibrary
) -> list[str]:
    """For rules whose key (`by`) is an object or a list in the events, and not a single value."""

    def inside(name: str) -> Sequence[str] | None:
        for event in examples.values():
            value = value_at(event.attributes, name)[1]
            if isinstance(value, Mapping):
                return list(value)
            if isinstance(value, list | tuple):
                return ()
        return None

    return [
        f"{counted(without_key[rule], 'event')} without a key: {sentence}"
        for rule, sentence in unusable_keys(library, inside)
        if without_key.get(rule)
    ]


def about_refusals(read: int, refused: int, first: str | None) -> str | None:
    """For an input whose records were all refused."""
    if read or not refused or first is None:
        return None
    if refused == 1:
        return f"the only record, {first}, could not be read"
    return f"not one of {refused:,} records could be read; the first is {first}"


def about_offsets(count: int, example: str | None) -> str | None:
    """For times without an offset."""
    if not count or example is None:
        return None
    have = "time has" if count == 1 else "times have"
    return f"{count:,} {have} no offset, as in {example}: give a time zone, as in `--timezone UTC`"


def about_numbers(read: int, first: str | None, problems: Sequence[str]) -> str | None:
    """For times that are numbers without a given unit."""
    found = next((each for each in map(_TIME_NUMBER.match, problems) if each), None)
    if read or first is None or found is None:
        return None
    number = found[1] or found[2]
    unit = _unit_of(float(number)) or "s"
    return (
        f"the times are numbers, as {number} in {first}: give their unit after the column, as in"
        f" `--columns time=time:{unit}`"
    )


_TIME_NUMBER = re.compile(
    r"`time`: `(\d+(?:\.\d+)?)` is no RFC 3339 time"
    r"|`time` must be an RFC 3339 string; given is the number (\d+(?:\.\d+)?)"
)


def about_kinds(read: int, problems: Sequence[str]) -> str | None:
    """For records that were all refused, if an attribute is declared with another kind of value."""
    for each in () if read else problems:
        if found := _OTHER_KIND.match(each):
            name, type_, number = found.groups()
            kind = "string" if number is None else "double" if "." in number else "long"
            return (
                f"the values of `{name}` are {'texts' if number is None else 'numbers'}: write"
                f" `attribute {kind} {name};` in `{type_}`"
            )
    return None


_OTHER_KIND = re.compile(
    r"attribute `([^`]+)` of `([^`]+)`: (?:(-?\d+(?:\.\d+)?) was given, a `string`"
    r"|\".*\" was given, an? `(?:short|long|long long|unsigned.*|float|double)`)"
)


def about_columns(read: int, problems: Sequence[str]) -> str | None:
    """For rows that were all refused, if the first has no column for an attribute."""
    missing = [found[1] for each in problems if (found := _is_missing(each))]
    if read or not missing:
        return None
    one = len(missing) == 1
    return (
        f"{listed(missing)} {'is an attribute' if one else 'are attributes'} without a column:"
        f" `--columns {missing[0]}=COLUMN` names the column; if there is none, give the events a"
        " type that does not declare the attribute"
    )


_is_missing = re.compile(r"attribute `([^`]+)` of `[^`]+` is missing").match


def about_encoding(example: str | None) -> str | None:
    """For records that are not UTF-8."""
    if example is None:
        return None
    return (
        f"text is read as UTF-8, and {example} is not UTF-8: if the file has another encoding,"
        " convert it, as with `iconv -f CP1252 -t UTF-8`"
    )


def about_lines(
    read: int, refused: int, objects: int, file: str = "FILE", raw: bytes | str | None = None
) -> str | None:
    """For an input of JSON lines without a single JSON object."""
    if read or not refused or objects:
        return None
    text = raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else raw or b""
    if found := _BEGIN_OF_JSON.match(text):
        every = ".[]" if found[1] == b"[" else "."
        return (
            "no line is a JSON object, and events are read as one whole object a line:"
            f" `jq -c '{every}' {file} > lines.jsonl` converts this file"
        )
    return (
        "no line is a JSON object: events are read as JSON lines, one whole object a line;"
        " `--format` names another format, and `--format csv --delimiter space --header NAME,...`"
        " reads the words of a line as its columns"
    )


_BEGIN_OF_JSON = re.compile(rb"\s*([\[{])\s*(?:[\[{\"\]}]|$)")
"""What begins with a bracket may also be a log, as `[Sun Dec 04 ...`."""


def about_members(read: int, raw: bytes | str | None, problems: Sequence[str]) -> str | None:
    """For JSON objects that were all refused, if the first is no CloudEvent."""
    no_time = any(_NO_TIME.search(each) for each in problems)
    no_type = any(_NO_TYPE.match(each) for each in problems)
    no_data = any(_NO_DATA.match(each) for each in problems)
    no_id = any(_NO_ID.match(each) for each in problems)
    is_other = no_time or no_type or no_data or no_id
    if read or raw is None or not is_other or not looks_like_an_object(raw):
        return None
    try:
        members = read_object(raw.encode() if isinstance(raw, str) else raw)
    except (EventError, UnicodeEncodeError):
        return None
    time = guessed_time(members)
    if no_time and time is None and (inside := _objects_inside(members)):
        path, count = inside
        return (
            f"the first record has {counted(count, 'object')} in `{path.partition('[')[0]}`, and"
            f" events are read one a line: `jq -c '.{path}'` writes each object as a line"
        )
    if no_data and not no_time:
        return (
            "the attributes of the records are beside `type` and not inside `data`:"
            " `--columns time=time` makes all members of an object its data"
        )
    if no_id and not no_time and not no_type:
        return (
            "a CloudEvent has an `id` and a `source`, both strings: `--columns time=time` reads the"
            " records as plain objects, with the line number as id"
        )
    example = "" if time is None else f", as in `--columns time={time}`"
    type_ = "; `--type NAME` names the type of all events" if no_type else ""
    advice = f"`--columns` says which member holds what{example}{type_}"
    if not no_time and not no_id:
        advice = (
            "`--type NAME` names the type of all events, and `--columns type=MEMBER` the member"
            " that holds it"
        )
    return (
        f"the records are objects without a `{'time' if no_time else 'type'}`: {advice}; the"
        f" members of the first are {listed(list(members), 12)}"
    )


def _objects_inside(members: Mapping[str, Any]) -> tuple[str, int] | None:
    """The path to a list of objects, in the notation of `jq`, and the outermost list's length."""
    for name, value in members.items():
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            first = value[0]
            further = None if guessed_time(first) else _objects_inside(first)
            return (f"{name}[]" if further is None else f"{name}[].{further[0]}"), len(value)
    return None


# Does not match times whose offset is missing.
_NO_TIME = re.compile(r"`time`(?!.*the offset is missing).*\bmissing")
_NO_TYPE = re.compile(r"`type` must be a non-empty string; it is missing")
_NO_ID = re.compile(r"`(id|source)` must be a non-empty string; (it is missing|given is \d)")
_NO_DATA = re.compile(r"`data` of `[^`]*` must be an object with .* there is none")


def guessed_time(members: Mapping[str, Any], prefix: str = "") -> str | None:
    """The member that is most likely a time, with its unit if it is a number."""
    for name, value in members.items():
        if not _sounds_like_a_time(name):
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = 0.0
        unit = _unit_of(number)
        if unit is not None:
            return f"{prefix}{name}:{unit}"
        if isinstance(value, str) and (
            fits(value, ValueType("timestamp")) or _LIKE_A_TIME.match(value)
        ):
            return f"{prefix}{name}"
    if prefix.count(".") >= _DEEPEST:
        return None
    inner = (
        guessed_time(value, f"{prefix}{name}.")
        for name, value in members.items()
        if isinstance(value, dict)
    )
    return next((each for each in inner if each is not None), None)


_DEEPEST = 3
"""The most names before that of a time, as in `Event.System.TimeCreated.SystemTime`."""
_LEAST = 1e8
"""Seconds of a time in 1973; a smaller number is more likely a duration or a count."""
_MOST_OF_A_UNIT = (("s", 1e11), ("ms", 1e14), ("us", 1e17), ("ns", 1e20))


_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")


def _unit_of(number: float) -> str | None:
    """The unit in which a number is a time between 1973 and 5138."""
    return next((unit for unit, most in _MOST_OF_A_UNIT if _LEAST <= number < most), None)


def _sounds_like_a_time(name: str) -> bool:
    words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return not _TIME_WORDS.isdisjoint(words)


_TIME_WORDS = {"at", "date", "datetime", "isodate", "time", "timestamp", "ts", "when"}


def looks_like_an_object(raw: bytes | str) -> bool:
    text = raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else raw
    text = text.strip()
    return text.startswith(b"{") and text.endswith(b"}")
