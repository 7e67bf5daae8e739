"""Values of parameters from outside, and what becomes of a run when they change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import ensue
from ensue.engine.changing import with_parameters
from ensue.errors import SnapshotError, UsageError
from ensue.lang.expanding.rewriting import text_with_values
from ensue.library import Library

RULES = """
parameter long limit = 3;
parameter duration pause = 5 min;
parameter double share = 0.5;
parameter boolean loud = FALSE;
parameter string who = 'root'; // of the machine
parameter timestamp since = 2024-01-01T00:00:00Z;
eventtype Login { attribute string user; attribute double part; };
eventtype Burst { attribute boolean loud; };
Burst correlation Many (Login f where user = who AND part > share AND time > since)
    f{limit}
    within pause
{
    case true: push new Burst { loud = loud };
}
Burst correlation Any (Login f) f{4} { case true: push new Burst { loud = TRUE }; }
"""


def login(second: int) -> ensue.Event:
    return ensue.Event.of(
        "Login",
        id=str(second),
        time=f"2024-05-01T00:00:{second:02}Z",
        data={"user": "root", "part": 1.0},
    )


def test_the_defaults_are_the_values_without_others() -> None:
    assert ensue.parse(RULES).parameters == {
        "limit": 3,
        "pause": "5 min",
        "share": 0.5,
        "loud": False,
        "who": "root",
        "since": datetime(2024, 1, 1, tzinfo=UTC),
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"limit": 7, "pause": timedelta(seconds=3), "loud": True}, (7, "3 s", True)),
        ({"limit": "7", "pause": "3 s", "loud": "true"}, (7, "3 s", True)),
        ({"limit": 7.0, "pause": " 3s ", "loud": "TRUE"}, (7, "3 s", True)),
    ],
)
def test_values_come_as_python_has_them_or_as_text(
    given: dict[str, object], expected: tuple[object, ...]
) -> None:
    found = ensue.parse(RULES, parameters=given).parameters

    assert (found["limit"], found["pause"], found["loud"]) == expected


def test_a_library_is_printed_with_its_values_and_read_again_as_it_is() -> None:
    library = ensue.parse(RULES, parameters={"limit": 7, "pause": "3 s", "who": "it's"})
    again = ensue.parse(str(library))

    assert (again.parameters, str(again)) == (library.parameters, str(library))
    assert "parameter long limit = 7;" in str(library)


def test_a_text_that_looks_like_a_number_stays_text_where_text_is_declared() -> None:
    found = ensue.parse(RULES, parameters={"who": "007", "share": 1}).parameters

    assert (found["who"], found["share"]) == ("007", 1.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limt": 3}, "there is no parameter `limt`; did you mean `limit`?"),
        ({"limit": "ten"}, "`ten` does not fit parameter `limit`, a `long`"),
        ({"limit": 2**31}, "does not fit parameter `limit`, a `long`"),
        ({"limit": 1.5}, "does not fit parameter `limit`, a `long`"),
        ({"limit": True}, "does not fit parameter `limit`, a `long`"),
        ({"pause": 5}, "`5` does not fit parameter `pause`, a `duration`"),
        ({"pause": "0 s"}, "does not fit parameter `pause`, a `duration`"),
        ({"share": "nan"}, "does not fit parameter `share`, a `double`"),
        ({"loud": "perhaps"}, "does not fit parameter `loud`, a `boolean`"),
        ({"who": 5}, "does not fit parameter `who`, a `string`"),
        ({"since": "yesterday"}, "does not fit parameter `since`, a `timestamp`"),
        ({"limit": None}, "does not fit parameter `limit`, a `long`"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_there_is(
    given: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as refused:
        ensue.parse(RULES, parameters=given)

    assert words in str(refused.value)
    assert "the library has the parameters `limit` (long, 3), `pause` (duration, 5 min)" in str(
        refused.value
    )


def test_a_library_without_parameters_says_so() -> None:
    with pytest.raises(UsageError, match=r"no parameter `n` \(the library has no parameters\)"):
        ensue.parse("eventtype A {}", parameters={"n": 1})


def test_the_text_of_a_library_is_as_it_was_written_and_what_runs_stands_alone() -> None:
    library = ensue.parse(RULES, parameters={"limit": 2})

    assert "f{limit}" in str(library)
    assert "parameter" not in library.running_text
    again = Library.from_tables(library.tables())
    events = [login(second) for second in range(2)]
    assert [each.id for each in again.run(events)] == [each.id for each in library.run(events)]
    assert len(list(library.run(events))) == 1


def test_a_snapshot_is_of_one_set_of_values() -> None:
    run = ensue.parse(RULES).start()
    snapshot = run.snapshot()

    ensue.parse(RULES).resume(snapshot)
    with pytest.raises(SnapshotError):
        ensue.parse(RULES, parameters={"limit": 2}).resume(snapshot)


def test_a_changed_value_keeps_the_state_of_the_rules_that_mean_the_same() -> None:
    library = ensue.parse(RULES)
    run = library.start(engine="step")
    for second in range(2):
        run.push(login(second))

    run.change(Library(with_parameters(library.checked, {"limit": 2})))
    made = [each.extensions["correlation"] for n in (2, 3) for each in run.push(login(n))]

    # `Many` starts anew with its limit, and `Any` has seen four.
    assert sorted(made) == ["Any", "Many"]


def test_rules_that_are_added_use_the_parameters_that_run() -> None:
    run = ensue.parse(RULES, parameters={"limit": 2}).start(engine="step")
    run.add("Burst correlation Other (Login f) f{limit} { case true: push new Burst {}; }")
    run.remove("Many", "Any")

    made = [len(run.push(login(second))) for second in range(4)]

    assert made == [0, 1, 0, 1]


def test_a_text_with_other_values_keeps_everything_else() -> None:
    text = text_with_values(RULES, {"limit": 4, "who": "ann", "pause": "90 s"})

    assert "parameter long limit = 4;" in text
    assert "parameter string who = 'ann'; // of the machine" in text
    assert "parameter duration pause = 90 s;" in text
    assert ensue.parse(text).parameters["limit"] == 4
    assert text_with_values(RULES, {"limit": 3}) == RULES


def test_a_derived_attribute_takes_a_parameter() -> None:
    text = """
    parameter string mark = 'a';
    eventtype A { attribute string k; attribute boolean good = k = mark; };
    A correlation Good (A x where good) x { case true: push x; }
    """
    events = [ensue.Event.of("A", id=k, time=0, data={"k": k}) for k in "ab"]

    assert [each.id for each in ensue.parse(text).run(events)] == ["a"]
    assert [each.id for each in ensue.parse(text, parameters={"mark": "b"}).run(events)] == ["b"]
