"""Hypothesis strategies for events of any content that JSON can carry."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ensue.events.event import RESERVED, Event

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
SCALARS: st.SearchStrategy[Any] = (
    TEXTS
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.none()
)


def values() -> st.SearchStrategy[Any]:
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=6,
    )


def extension_names() -> st.SearchStrategy[str]:
    free = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=8)
    known = st.sampled_from(["priority", "expirytime", "partitionkey", "subject", "traceparent"])
    optional = {"datacontenttype", "dataschema"}
    return (free | known).filter(lambda name: name not in RESERVED | optional)


@st.composite
def events(draw: st.DrawFn, texts_only: bool = False) -> Event:
    """Any event. With `texts_only`, extensions are text, as headers carry them."""
    others = st.booleans() | st.integers(-(2**31), 2**31 - 1)
    printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=8)
    found = draw(
        st.dictionaries(extension_names(), printable if texts_only else printable | others)
    )
    if "subject" in found:
        found["subject"] = str(found["subject"])
    names = TEXTS.filter(bool) if not texts_only else printable
    return Event(
        draw(names),
        draw(names),
        draw(names),
        draw(st.integers(0, 4_000_000_000_000_000)),
        draw(values() | st.binary(max_size=6) if texts_only else values()),
        found,
    )
