"""What is handed to a library or a run by mistake is answered with what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

import ensue

LIBRARY = ensue.parse("""
eventtype Failed { attribute string user; }
Failed correlation Each (Failed f) f { case true: push f; }
""")


@pytest.mark.parametrize("given", [None, 3, ["a"]])
def test_what_is_no_event_is_refused_as_one(given: Any) -> None:
    with pytest.raises(ensue.EventError, match="an event is an `Event`, a mapping or a JSON text"):
        LIBRARY.start().push(given)


def test_a_lateness_without_a_unit_is_refused() -> None:
    given: Any = 5
    with pytest.raises(ensue.UsageError, match="a duration is text such as `5 s`"):
        LIBRARY.start(lateness=given)


def test_a_name_that_is_not_there_offers_the_close_match() -> None:
    with pytest.raises(KeyError, match="did you mean `Each`"):
        LIBRARY.correlations["Eech"]
    with pytest.raises(KeyError, match="did you mean `Failed`"):
        LIBRARY.types["Faild"]
