"""`ensue run --explain`: the reasons of what came and of what did not, beside the outputs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Ensue, event

TIMER_RULE = """
eventtype Beat { attribute string user; };
eventtype Down {};
Down ecl Silence (Beat beat) by user { repeat { notify { sequential { beat, timeout(10 s) } } } }
"""


def test_each_output_is_told_with_its_label_and_the_events_that_caused_it(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "--events", events, "--explain")

    assert answer.code == 0
    assert answer.err.splitlines()[:3] == [
        "`Alarm` from `Guessed` for key `ann`: "
        "completed by `3` at 2024-05-06T09:00:02Z, label `tried`",
        "  because `failed` was matched by event `1`, at 2024-05-06T09:00:00Z",
        "  because `done` was matched by event `3`, at 2024-05-06T09:00:02Z",
    ]


def test_outputs_are_the_same_as_without_reasons_and_alone_on_stdout(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    explained = ensue("run", rules, "--events", events, "--explain")

    assert explained.out == ensue("run", rules, "--events", events).out


def test_at_the_end_every_rule_says_what_it_waits_for_and_until_when(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(event(1, "Failed", 0) + "\n")

    answer = ensue("run", rules, "--events", path, "--explain")

    assert answer.err.splitlines() == [
        "`Guessed` for key `ann`: waits for `done`, no later than 2024-05-06T09:01:00Z",
        "  `failed` was matched by event `1`, at 2024-05-06T09:00:00Z",
        "`NothingMore`: no event that it reads has come",
        "1 event read; 0 outputs",
    ]


def test_what_has_left_its_window_is_told_with_the_time_it_waited_to(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    path = tmp_path / "slow.jsonl"
    path.write_text(f"{event(1, 'Failed', 0)}\n{event(2, 'Other', 70)}\n")

    answer = ensue("run", rules, "--events", path, "--explain", "--correlation", "Guessed")

    assert answer.err.splitlines() == [
        "`Guessed` for key `ann`: waits for `failed`, then `done`",
        "  `failed` was matched by event `1`, at 2024-05-06T09:00:00Z, and has left the window",
        "    the rest had to come no later than 2024-05-06T09:01:00Z",
        "1 event of type `Other` is read by no rule",
        "2 events read; 0 outputs",
    ]


def test_the_clock_is_a_cause_too(ensue: Ensue, tmp_path: Path) -> None:
    rule = tmp_path / "silence.cor"
    rule.write_text(TIMER_RULE)
    path = tmp_path / "beat.jsonl"
    path.write_text(event(1, "Beat", 0) + "\n")

    answer = ensue("run", rule, "-e", path, "--explain", "--until", "2024-05-06T09:00:20Z")

    assert answer.err.splitlines()[:3] == [
        "`Down` from `Silence` for key `ann`: completed by the clock at 2024-05-06T09:00:10Z",
        "  because `beat` was matched by event `1`, at 2024-05-06T09:00:00Z",
        "  because the clock reached 2024-05-06T09:00:10Z",
    ]


def test_only_the_reasons_of_the_correlation_that_is_asked_for_are_told(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "-e", events, "--explain", "--correlation", "NothingMore")

    assert "`Alarm` from `Guessed`" not in answer.err
    assert answer.err.splitlines()[0].startswith("`NothingMore`: waits for")


def test_the_three_keys_that_came_nearest_are_told(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    path = tmp_path / "many.jsonl"
    lines = [event(n, "Done", n, f"user-{n}") for n in range(5)]
    path.write_text("\n".join([*lines, event(9, "Failed", 9, "user-4")]) + "\n")

    answer = ensue("run", rules, "-e", path, "--explain", "--correlation", "Guessed")

    told = [line for line in answer.err.splitlines() if line.startswith("`Guessed`")]
    assert len(told) == 3
    assert "`user-4`: waits for `done`" in told[0]


def test_a_run_on_batches_explains_in_the_same_words(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answers = [
        ensue("run", rules, "-e", events, "--explain", "--engine", engine)
        for engine in ("batch", "step")
    ]

    assert answers[0].err == answers[1].err
    assert answers[0].out == answers[1].out
