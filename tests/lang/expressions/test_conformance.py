"""Every conformance case of CESQL, as it is, one test each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from ensue.errors import LibraryError
from ensue.events.event import Event
from ensue.events.times import microseconds_of
from ensue.lang.expressions.evaluation import MISSING, EventScope, evaluate
from ensue.lang.expressions.text.parsing import parse_expression

CORPUS = Path(__file__).parents[2] / "corpora" / "cesql_tck"

# Cases that we answer otherwise on purpose: what we answer, and why.
DEVIATIONS: dict[str, tuple[Any, set[str], str]] = {
    "integer_builtin_functions/ABS overflow": (
        2147483648,
        set(),
        "integers have 64 bits here, so that the absolute value of -2147483648 does not overflow",
    ),
}


@dataclass(frozen=True)
class Case:
    id: str
    expression: str
    event: dict[str, Any]
    result: Any
    errors: set[str]


def read_cases() -> list[Case]:
    cases = []
    for path in sorted(CORPUS.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        # Expressions such as TRUE and -10 are text; results such as true and -10 are values.
        as_text = yaml.load(text, Loader=yaml.BaseLoader)["tests"]
        as_values = yaml.safe_load(text)["tests"]
        for written, case in zip(as_text, as_values, strict=True):
            event = {
                "id": "1",
                "source": "here",
                "type": "sample",
                **case.get("eventOverrides", {}),
            }
            errors = {case["error"]} if "error" in case else set()
            cases.append(
                Case(
                    f"{path.stem}/{written['name']}",
                    written["expression"],
                    case.get("event", event),
                    case.get("result"),
                    errors,
                )
            )
    return cases


CASES = read_cases()


@dataclass(frozen=True)
class CaseScope:
    """The event of a case; unlike ours it may have no time."""

    event: dict[str, Any]

    def lookup(self, parts: tuple[str, ...]) -> Any:
        given = dict(self.event)
        given.pop("specversion", None)
        required = {name: given.pop(name) for name in ("id", "source", "type")}
        time = given.pop("time", None)
        if time is None and parts == ("time",):
            return MISSING
        instant = 0 if time is None else microseconds_of(time)
        return EventScope(Event(time=instant, extensions=given, **required)).lookup(parts)


def test_the_corpus_is_whole() -> None:
    assert len(CASES) == 275


def test_every_deviation_names_a_case() -> None:
    assert set(DEVIATIONS) <= {case.id for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: Case) -> None:
    if case.errors == {"parse"}:
        with pytest.raises(LibraryError):
            parse_expression(case.expression)
        return

    outcome = evaluate(parse_expression(case.expression), CaseScope(case.event))
    value, errors, _ = DEVIATIONS.get(case.id, (case.result, case.errors, ""))

    assert outcome.errors == errors
    assert type(outcome.value) is type(value)
    # An aware datetime equals another that names the same instant.
    assert outcome.value == value
    assert not isinstance(value, datetime) or value.tzinfo is not None
