"""Batches of Kafka records as events, with a fast path for usual records.

In comes a batch of Spark's Kafka source; out goes, for each record, its arrival and its event or
its problems. `records` defines what a record is, and `ensue.events.conformance` what fits a type.
The fast path takes a record with unique headers, all required attributes, a time in UTC and data in
the form of its type. Any other record is read from its start by the general code, which alone
rejects records and words their problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ensue.engine.step.dispatch.routines import fit_routine
from ensue.errors import EventError
from ensue.events.cloudevents import NESTING_LIMIT, TEXT_ATTRIBUTES, VERSION, read_json
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.times import SECOND, parse_time
from ensue.events.types import TypeSystem
from ensue.spark.kafka.records import (
    CONTENT_TYPE,
    PREFIX,
    STRUCTURED_MEDIA_TYPE,
    Header,
    Place,
    is_json,
    is_structured,
    media_type_of,
    read_record,
)

COLUMNS = ("key", "value", "topic", "partition", "offset", "headers")
REMEMBERED = 4096
"""How many seconds, fractions of a second and content types are cached."""

_decode_json = msgspec.json.Decoder().decode
_encode_json = msgspec.json.Encoder().encode
_Fit = Callable[[Event], Event]


class _HeaderShape(NamedTuple):
    """The number of the header of each attribute; None if a record has no such header."""

    content_type: int | None
    required: tuple[int, int, int, int] | None
    """The headers of id, source, type and time, if the record may be in binary mode."""
    version: int | None
    others: tuple[tuple[str, int], ...]


class _Content(NamedTuple):
    """A content type, decoded."""

    text: str
    is_json: bool
    mode: bool | None
    """True for structured mode, False for other content, None for content of the general code."""


class _UnusualError(Exception):
    """The record needs the general code."""


class RecordReader:
    """Reads the records of a stream; compiled routines and caches serve all batches."""

    def __init__(self, types: TypeSystem) -> None:
        self._types = types
        self._fits: Mapping[str, _Fit] = {each.name: self._fit(each.name) for each in types}
        self._reals = {
            each.name: [n for n, t in types.attributes(each.name).items() if t.name == "double"]
            for each in types
        }
        self._contents: dict[bytes | None, _Content] = {}
        self._seconds: dict[str, int] = {}
        self._fractions: dict[str, int] = {"Z": 0}

    def read(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Event | Rejected]]:
        """The arrival of each record, and its event or its problems."""
        column = dict(zip(COLUMNS, batch.columns, strict=True))
        firsts = column["headers"].offsets.to_pylist()
        inner = column["headers"].values
        names = inner.field("key").dictionary_encode()
        words: list[str] = names.dictionary.to_pylist()
        codes = names.indices.to_numpy().astype(np.uint32).tobytes()
        contents = _objects(inner.field("value"))
        shapes: dict[bytes, _HeaderShape | None] = {}
        plain = [_objects(column[name]) for name in COLUMNS[:-1]]
        rows = zip(firsts, firsts[1:], _orders(batch), *plain, strict=False)
        for first, end, order, key, value, topic, partition, offset in rows:
            code = codes[4 * first : 4 * end]
            try:
                shape = shapes[code]
            except KeyError:
                numbers = np.frombuffer(code, np.uint32).tolist()
                shape = shapes[code] = header_shape(tuple(words[each] for each in numbers))
            try:
                if shape is None:
                    raise _UnusualError
                event = self._event(shape, contents, first, value, key, topic, partition, offset)
            except _UnusualError:
                numbers = np.frombuffer(code, np.uint32).tolist()
                named = [words[each] for each in numbers]
                headers = list(zip(named, contents[first:end], strict=True))
                place = Place(topic, partition, offset)
                yield order, self._read_in_full(key, value, place, headers)
            else:
                yield order, event

    def _event(
        self,
        shape: _HeaderShape,
        contents: list[Any],
        first: int,
        value: bytes | None,
        key: bytes | None,
        topic: str,
        partition: int,
        offset: int,
    ) -> Event:
        given = None if shape.content_type is None else contents[first + shape.content_type]
        content = self._contents.get(given) or self._content(given)
        if content.mode is None:
            raise _UnusualError
        if content.mode or shape.required is None:
            id_, source, type_, time, data, members = _structured(value)
        else:
            id_, source, type_, time, members = _attributes(shape, contents, first)
            if content.text:
                members["datacontenttype"] = content.text
            data = None
            if value:
                data = _json(value) if content.is_json else value
        members["kafkatopic"] = topic
        members["kafkapartition"] = partition
        members["kafkaoffset"] = offset
        if key is not None:
            members["kafkakey"] = key.decode(errors="replace")
        fit = self._fits.get(type_)
        if fit is None:
            return Event(id_, source, type_, self._instant(time), data, members)
        if data.__class__ is dict:
            for name in self._reals[type_]:
                # JSON has one kind of number, and many write 20 for a real.
                if data.get(name).__class__ is int:
                    data[name] = _real(data[name])
        return fit(Event(id_, source, type_, self._instant(time), data, members))

    def _read_in_full(
        self, key: bytes | None, value: bytes | None, place: Place, headers: list[Header]
    ) -> Event | Rejected:
        try:
            return conform(read_record(key, value, headers, place), self._types)
        except EventError as error:
            told = {
                **place._asdict(),
                "key": key,
                "value": value,
                "headers": [{"key": name, "value": content} for name, content in headers],
                "problems": list(error.problems),
            }
            # Bytes become base64, which is how `from_json` reads binary columns.
            return Rejected(place.offset, msgspec.json.encode(told), error.problems)

    def _fit(self, type_: str) -> _Fit:
        def conformed(event: Event) -> Event:
            try:
                return conform(event, self._types)
            except EventError:
                raise _UnusualError from None

        return fit_routine(self._types.attributes(type_), conformed)

    def _content(self, given: bytes | None) -> _Content:
        text = (given or b"").decode("latin-1").strip()
        media_type = media_type_of(text)
        mode = None if is_structured(media_type) else False
        if media_type == STRUCTURED_MEDIA_TYPE:
            mode = True
        content = _Content(text, is_json(media_type), mode)
        if len(self._contents) < REMEMBERED:
            self._contents[given] = content
        return content

    def _instant(self, text: str) -> int:
        """The time, from cached seconds and fractions."""
        second = self._seconds.get(text[:19])
        fraction = self._fractions.get(text[19:])
        if second is None:
            if text[17:19] == "60":
                raise _UnusualError
            try:
                second = parse_time(f"{text[:19]}Z")
            except ValueError:
                raise _UnusualError from None
            if len(self._seconds) >= REMEMBERED:
                self._seconds.clear()
            self._seconds[text[:19]] = second
        if fraction is None:
            fraction = _fraction(text[19:])
            if len(self._fractions) < REMEMBERED:
                self._fractions[text[19:]] = fraction
        return second + fraction


@lru_cache(maxsize=1024)
def header_shape(names: tuple[str, ...]) -> _HeaderShape | None:
    """The shape of headers with these names in this order; None for the general code."""
    lowered = [name.lower() for name in names]
    told = [name for name in lowered if name == CONTENT_TYPE or name.startswith(PREFIX)]
    if len(set(told)) < len(told):
        return None
    content_type = lowered.index(CONTENT_TYPE) if CONTENT_TYPE in lowered else None
    places = {
        name.removeprefix(PREFIX): place
        for place, name in enumerate(lowered)
        if name.startswith(PREFIX)
    }
    version = places.pop("specversion", None)
    if not places and version is None:
        return _HeaderShape(content_type, None, None, ())
    required = [places.pop(name, None) for name in ("id", "source", "type", "time")]
    # The header `content-type` decides, and `ce_datacontenttype` is ignored.
    ignored = places.pop("datacontenttype", None)
    if ignored is not None or places.keys() & {"data", "data_base64"} or None in required:
        return None
    one, two, three, four = (each for each in required if each is not None)
    return _HeaderShape(content_type, (one, two, three, four), version, tuple(places.items()))


def _structured(value: bytes | None) -> tuple[str, str, str, str, Any, dict[str, Any]]:
    """The required attributes, the data and the extensions of an event in JSON."""
    if value is None:
        raise _UnusualError
    members = _json(value)
    if members.__class__ is not dict:
        raise _UnusualError
    take = members.pop
    try:
        id_, source, type_, time = take("id"), take("source"), take("type"), take("time")
    except KeyError:
        raise _UnusualError from None
    if (
        not (id_ and source and type_)
        or id_.__class__ is not str
        or source.__class__ is not str
        or type_.__class__ is not str
        or time.__class__ is not str
        or take("specversion", VERSION) != VERSION
        or "data_base64" in members
    ):
        raise _UnusualError
    data = take("data", None)
    for name, each in members.items():
        kind = each.__class__
        if kind is not str and ((kind is not int and kind is not bool) or name in TEXT_ATTRIBUTES):
            raise _UnusualError
    return id_, source, type_, time, data, members


def _attributes(
    shape: _HeaderShape, contents: list[Any], first: int
) -> tuple[str, str, str, str, dict[str, Any]]:
    """The required attributes and the extensions, from headers."""
    assert shape.required is not None
    one, two, three, four = shape.required
    try:
        id_ = contents[first + one].decode()
        source = contents[first + two].decode()
        type_ = contents[first + three].decode()
        time = contents[first + four].decode()
        others: dict[str, Any] = {
            name: contents[first + place].decode() for name, place in shape.others
        }
    except (AttributeError, UnicodeDecodeError):
        # A header without content, or with content that is no text.
        raise _UnusualError from None
    if not (id_ and source and type_):
        raise _UnusualError
    if shape.version is not None and contents[first + shape.version] != VERSION.encode():
        raise _UnusualError
    return id_, source, type_, time, others


def _json(text: bytes) -> Any:
    """As `read_json`, which is slower because it detects repeated members.

    A text repeats no member if it equals its value written as JSON, or if it has as many colons as
    that and no escapes.
    """
    try:
        value = _decode_json(text)
        written = _encode_json(value)
        if written != text and (b"\\" in text or written.count(b":") != text.count(b":")):
            return read_json(text)
        # A text beyond the nesting limit has at least that many opening brackets.
        is_long = len(text) > 2 * NESTING_LIMIT
        if is_long and text.count(b"{") + text.count(b"[") > NESTING_LIMIT:
            return read_json(text)
    except (ValueError, RecursionError, EventError):
        raise _UnusualError from None
    return value


def _real(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _UnusualError from None


def _fraction(text: str) -> int:
    """The microseconds of `.25Z`."""
    digits = text[1:-1]
    if text[:1] != "." or text[-1:] != "Z" or not (digits.isascii() and digits.isdigit()):
        raise _UnusualError
    return int(digits[:6].ljust(6, "0")) % SECOND


def _orders(batch: pa.RecordBatch) -> list[int]:
    """`Place.order` of every record."""
    _, _, topics, partitions, offsets, _ = batch.columns
    named = topics.dictionary_encode()
    bases = np.array(
        [Place(each, 0, 0).order for each in named.dictionary.to_pylist()] or [0], np.int64
    )
    partition = partitions.to_numpy().astype(np.int64) % 1024 << 48
    orders = bases[named.indices.to_numpy()] | partition | offsets.to_numpy() % (1 << 48)
    found: list[int] = orders.tolist()
    return found


def _objects(column: pa.Array) -> list[Any]:
    """As `to_pylist`, in a tenth of the time."""
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return found
