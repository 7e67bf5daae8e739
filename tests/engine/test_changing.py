"""Rules that come and go while a run goes on."""

from __future__ import annotations

import pytest

import ensue
from ensue.engine.run import Run
from ensue.errors import LibraryError, UsageError

from .rules import LIBRARY, event, login

WATCH = """
Alarm correlation Watch (Login l where ok = false) l by user
    { case true: push new Alarm { user = l.user }; }
"""


@pytest.fixture(params=["step", "reference", "batch"])
def run(request: pytest.FixtureRequest) -> Run:
    """A run in which one user is half way to an alarm."""
    run = ensue.parse(LIBRARY).start(str(request.param))
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 2, "eve", False))
    return run


def names(outputs: list[ensue.Event]) -> list[str]:
    return [f"{each.extensions['correlation']}:{each.extensions['causes']}" for each in outputs]


def test_an_added_rule_reads_from_the_next_event_and_the_others_go_on(run: Run) -> None:
    run.add(WATCH)

    assert names(run.push(login("e3", 3, "eve", False))) == ["Watch:e3"]
    assert names(run.push(login("e4", 4, "eve", True))) == ["Break:e3,e4"]


def test_a_library_is_added_as_well_as_a_text(run: Run) -> None:
    """Types that both declare, to the letter the same, are one."""
    run.add(ensue.parse(LIBRARY.split("Alarm correlation")[0] + WATCH))

    assert names(run.push(login("e3", 3, "bob", False))) == ["Watch:e3"]


def test_a_removed_rule_puts_out_nothing_any_more(run: Run) -> None:
    run.remove("Break")

    assert run.push(login("e3", 3, "eve", True)) == []


def test_a_replaced_rule_starts_afresh(run: Run) -> None:
    changed = LIBRARY[LIBRARY.index("Alarm correlation") :].replace("bad ; bad", "bad")
    run.replace(changed)

    assert run.push(login("e3", 3, "eve", True)) == []
    run.push(login("e4", 4, "eve", False))
    assert names(run.push(login("e5", 5, "eve", True))) == ["Break:e4,e5"]


def test_a_rule_that_is_replaced_by_itself_keeps_its_state(run: Run) -> None:
    run.replace(LIBRARY)

    assert names(run.push(login("e3", 3, "eve", True))) == ["Break:e2,e3"]


def test_a_rule_whose_type_has_changed_starts_afresh(run: Run) -> None:
    run.replace(LIBRARY.replace("attribute boolean ok;", "attribute boolean ok, again;"))

    login_again = event("Login", "e3", 3, user="eve", ok=True, again=False)
    assert run.push(login_again) == []


def test_a_replaced_rule_keeps_its_place_in_the_order(run: Run) -> None:
    run.add(WATCH)
    run.replace("Alarm correlation Break (Login l) l { case true: push new Alarm { user = 'x' }; }")

    assert names(run.push(login("e3", 3, "eve", False))) == ["Break:e3", "Watch:e3"]


def test_a_type_may_be_added_below_one_that_a_rule_reads(run: Run) -> None:
    run.add("eventtype SshLogin : Login { attribute string host; };")
    ssh = event("SshLogin", "e3", 3, user="eve", ok=True, host="h")

    assert names(run.push(ssh)) == ["Break:e2,e3"]


def test_a_mistake_in_the_new_text_is_shown_there_and_changes_nothing(run: Run) -> None:
    with pytest.raises(LibraryError) as raised:
        run.add("\nAlarm correlation Late (Logn l) l { case true: push new Alarm { user = 'x' }; }")

    (found,) = [each for each in raised.value.diagnostics if each.severity == "error"]
    assert (found.file, found.line) == ("<text>", 2)
    assert names(run.push(login("e3", 3, "eve", True))) == ["Break:e2,e3"]


def test_a_name_that_is_taken_cannot_be_added(run: Run) -> None:
    with pytest.raises(LibraryError, match="defined twice"):
        run.add(LIBRARY)


def test_a_type_that_a_rule_needs_cannot_be_removed(run: Run) -> None:
    with pytest.raises(LibraryError, match="Reset"):
        run.remove("Reset")


def test_a_name_that_does_not_run_cannot_be_removed(run: Run) -> None:
    with pytest.raises(UsageError, match="did you mean `Break`"):
        run.remove("Brake")


def test_a_snapshot_after_a_change_is_resumed_with_the_text_that_runs(run: Run) -> None:
    run.add(WATCH)
    resumed = ensue.parse(run.text).resume(run.snapshot())

    assert names(resumed.push(login("e3", 3, "eve", True))) == ["Break:e2,e3"]


def test_a_library_that_outgrows_its_limits_while_it_runs_is_refused() -> None:
    """Each text is within the bounds of one, and both together are not."""
    long = "x" * 2_500_000
    text = "eventtype A { attribute string s; }; A correlation R (A a) a { case true: push a; }"
    run = ensue.parse(text).start()
    run.add(f"A correlation S (A a where s = '{long}') a {{ case true: push a; }}")

    with pytest.raises(LibraryError, match="bytes in the files of a library"):
        run.add(f"A correlation T (A a where s = '{long}') a {{ case true: push a; }}")
    made = run.push(event("A", "1", 0, s=long))
    assert [each.extensions["correlation"] for each in made] == ["R", "S"]
