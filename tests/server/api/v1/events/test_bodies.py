"""The quick way through a batch takes what the general way takes, and leaves the rest to it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from ensue.events.times import EARLIEST, LATEST, format_time, parse_time
from ensue.server.access.rates import Rate
from ensue.server.access.tokens import Principal
from ensue.server.api.v1.events.bodies import BATCH, BodyReader, _times
from tests.server.live import settings

HEADERS = Headers({"content-type": BATCH})


def reader(**limits: Any) -> BodyReader:
    principal = Principal("test", ["publish"], ("*",), ("Secret*",), Rate(1))
    return BodyReader(settings(**limits), principal, HEADERS)


def general(body: bytes) -> Any:
    read = reader()
    return read._each(read._members(body))


def event(**more: Any) -> dict[str, Any]:
    return {"id": "1", "source": "s", "type": "T", "time": "2026-01-01T00:00:00Z", **more}


times = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.5Z",
        "2026-01-01T00:00:00.123456Z",
        "2026-01-01T00:00:00.1234567Z",
        "2026-01-01T00:00:00.12345678901Z",
        "2026-01-01t00:00:00z",
        "2026-01-01 00:00:00Z",
        "2026-06-30T23:59:60Z",
        "2026-06-30T23:59:60.5Z",
        "2026-01-01T02:00:00+02:00",
        "0001-01-01T00:00:00Z",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
plain = st.fixed_dictionaries(
    {"id": st.text(max_size=3), "source": st.just("s"), "type": st.just("T"), "time": times},
    optional={"specversion": st.just("1.0"), "data": values},
)


@given(st.lists(plain, min_size=1, max_size=4), st.booleans())
def test_what_the_quick_way_takes_the_general_way_takes_alike(
    events: list[dict[str, Any]], spaced: bool
) -> None:
    body = json.dumps(events, indent=1 if spaced else None, ensure_ascii=False).encode(
        "utf-8", "replace"
    )
    quick = reader()._plain(body)

    if quick is not None:
        right = general(body)
        assert [each for each, _ in quick.taken] == [each for each, _ in right.taken]
        assert [msgspec.json.decode(text) for _, text in quick.taken] == [
            msgspec.json.decode(text) for _, text in right.taken
        ]
        assert not right.rejected
        assert all(b"\n" not in text for _, text in quick.taken)


instants = st.integers(EARLIEST, LATEST).map(format_time)
nearly = st.from_regex(
    r"[0-9]{4}-[0-3][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9]"
    r"(\.[0-9]{0,8})?(Z|\+01:00|)",
    fullmatch=True,
)


@given(st.lists(instants | times | nearly, max_size=3), st.lists(instants, max_size=40))
def test_times_that_are_read_together_are_those_that_are_read_apart(
    some: list[str], others: list[str]
) -> None:
    together = [*others, *some, *others]
    try:
        expected: Any = list(map(parse_time, together))
    except ValueError:
        expected = ValueError
    try:
        found: Any = _times(together)
    except ValueError:
        found = ValueError

    assert found == expected


def test_a_plain_batch_goes_the_quick_way() -> None:
    body = json.dumps([event(), event(data={"a": [1, {"b": 2}]}), event(specversion="1.0")])

    assert reader()._plain(body.encode()) is not None


@pytest.mark.parametrize(
    "body",
    [
        '[{"id":"1","source":"s","type":"T","time":"2026-01-01T00:00:00Z","id":"2"}]',
        '[{"id":"1","source":"s","type":"T","time":"2026-01-01T00:00:00Z","data":{"a":1,"a":2}}]',
        json.dumps([event(subject="x")]),
        json.dumps([event(id="")]),
        json.dumps([event(time=None)]),
        json.dumps([event(time="2026-01-01")]),
        json.dumps([event(specversion="0.3")]),
        json.dumps([event(type="Secret.x")]),
        json.dumps([event(data="x" * 2_000_000)]),
        json.dumps([event(data=json.loads("[" * 250 + "]" * 250))]),
        json.dumps([event(data="a\nb")]),
        json.dumps(event()),
        "[]",
        "no JSON",
    ],
)
def test_what_is_out_of_the_ordinary_goes_the_general_way(body: str) -> None:
    assert reader()._plain(body.encode()) is None
