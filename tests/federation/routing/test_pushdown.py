"""What a service applies of filters lets through whatever one of them matches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.errors import LibraryError, LinkError, UsageError
from ensue.events.event import Event
from ensue.federation.adapters import KINDS, adapter_class
from ensue.federation.adapters.base import Service
from ensue.federation.messages.attributes import at_service
from ensue.federation.routing.distribution import is_meant, wanted_from
from ensue.subscriptions import Filter

NAMES = ("cars", "office", "c*", "mqtt", "kafka", "of?ice", "[x]")
ATOMS = (
    "speed > 50",
    "speed <= 20",
    "plate = 'D 1'",
    "EXISTS plate",
    "NOT (EXISTS ensuepath)",
    "ensueorigin = 'cars'",
    "start AFTER(10 s) (speed > 3)",
    "speed / 0 = 1",
    "missing < 3",
    "TRUE",
)


def texts() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(ATOMS),
        lambda inner: st.one_of(
            inner.map(lambda each: f"NOT ({each})"),
            st.tuples(inner, st.sampled_from(["AND", "OR", "XOR"]), inner).map(
                lambda three: f"({three[0]}) {three[1]} ({three[2]})"
            ),
        ),
        max_leaves=6,
    )


@st.composite
def wishes(draw: st.DrawFn) -> list[Filter]:
    found = []
    for text in draw(st.lists(texts(), min_size=1, max_size=3)):
        try:
            where = Filter.parse(text)
        except LibraryError:
            # Such as a comparison that can never hold.
            continue
        found.append(wanted_from(draw(st.lists(st.sampled_from(NAMES), max_size=2)), where))
    return found


def events() -> st.SearchStrategy[Event]:
    data = st.fixed_dictionaries(
        {}, optional={"speed": st.sampled_from([0, 20, 51, "fast"]), "plate": st.just("D 1")}
    )
    return data.map(lambda each: Event.of("Speed", time=0, id="1", source="s", data=each))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80, deadline=None)
@given(wanted=wishes(), event=events(), origin=st.sampled_from(["cars", "office", "[x]"]))
def test_nothing_that_is_wanted_is_held_back(
    kind: str, wanted: list[Filter], event: Event, origin: str
) -> None:
    url = "memory:pushdown" if kind == "proximity" else ""
    try:
        adapter = adapter_class(kind)(Service("cars", kind, url))
    except (UsageError, LinkError) as error:
        pytest.skip(str(error))
    pushed = adapter.pushed_down(wanted)
    here = at_service(event, origin, kind)

    if any(each.matches(here) for each in wanted):
        assert any(each.matches(event) for each in pushed)


@given(
    listed=st.lists(st.sampled_from(NAMES), max_size=3),
    name=st.sampled_from(["cars", "office", "mqtt", "[x]", "x"]),
    kind=st.sampled_from(["mqtt", "kafka"]),
)
def test_a_list_means_one_thing_as_a_list_and_as_a_filter(
    listed: list[str], name: str, kind: str
) -> None:
    event = at_service(Event.of("T", time=0), name, kind)
    wanted = wanted_from(listed, Filter.parse("TRUE"))

    assert wanted.matches(event) == is_meant(listed, name, kind)
