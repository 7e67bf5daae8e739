"""`ensue run`: events in, outputs out."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Ensue, event


def triggers(answer_outputs: list[dict[str, str]]) -> list[str]:
    return [output["trigger"] for output in answer_outputs]


def test_outputs_are_cloudevents_and_nothing_else_is_on_stdout(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "--events", events)

    assert answer.code == 0
    assert answer.outputs[0] == {
        "specversion": "1.0",
        "id": answer.outputs[0]["id"],
        "source": "ensue/Guessed",
        "type": "Alarm",
        "time": "2024-05-06T09:00:02Z",
        "correlation": "Guessed",
        "trigger": "3",
        "labels": "tried",
        "causes": "1,3",
        "partitionkey": "ann",
        "data": {"user": "ann"},
    }
    assert triggers(answer.outputs) == ["3", "4", "6"]
    assert answer.err == "6 events read; 3 outputs\n"


def test_the_input_is_put_in_the_order_of_its_times(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_text(f"{event(1, 'Done', 5)}\n{event(2, 'Failed', 1)}\n")

    assert triggers(ensue("run", rules, "-e", path).outputs) == ["1"]


def test_events_come_from_the_standard_input(ensue: Ensue, rules: Path, events: Path) -> None:
    answer = ensue("run", rules, "--events", "-", stdin=events.read_bytes())

    assert triggers(answer.outputs) == ["3", "4", "6"]


def test_an_empty_input_puts_out_nothing(ensue: Ensue, rules: Path) -> None:
    answer = ensue("run", rules, "--events", "-", stdin="")

    assert (answer.code, answer.out) == (0, "")
    assert answer.err == "0 events read; 0 outputs\n"


def test_outputs_go_to_a_file(ensue: Ensue, rules: Path, events: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.jsonl"

    answer = ensue("run", rules, "--events", events, "--out", out)

    assert answer.out == ""
    assert answer.err == f"6 events read; 3 outputs in `{out}`\n"
    assert [json.loads(line)["trigger"] for line in out.read_text().splitlines()] == ["3", "4", "6"]


def test_csv_and_parquet_give_what_json_lines_give(
    ensue: Ensue, rules: Path, events: Path, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [json.loads(line) for line in events.read_text().splitlines()]
    flat = [{"user": row.pop("data")["user"], **row} for row in rows]
    with (tmp_path / "events.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(flat[0]))
        writer.writeheader()
        writer.writerows(flat)
    pq.write_table(pa.Table.from_pylist(flat), tmp_path / "events.parquet")
    expected = ensue("run", rules, "--events", events).out

    assert ensue("run", rules, "--events", tmp_path / "events.csv").out == expected
    assert ensue("run", rules, "--events", tmp_path / "events.parquet").out == expected


def test_the_format_can_be_named(ensue: Ensue, rules: Path, events: Path, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(events.read_bytes())

    assert ensue("run", rules, "--events", path).code == 2
    assert len(ensue("run", rules, "--events", path, "--format", "jsonl").outputs) == 3


def test_a_wide_window_over_a_whole_input_runs_in_batches(ensue: Ensue, tmp_path: Path) -> None:
    """`auto` leaves thousands of places to compiled loops; the outputs are the same."""
    rule = tmp_path / "wide.cor"
    rule.write_text(
        "eventtype A {}; eventtype Out {};"
        "Out correlation Wide (A a) a{300} within 1 h { case true: push new Out {}; }"
    )
    path = tmp_path / "many.jsonl"
    path.write_text(
        "".join(
            f'{{"id": "{n}", "source": "s", "type": "A", "time": "2024-01-01T00:{n // 60:02}'
            f':{n % 60:02}Z"}}\n'
            for n in range(650)
        )
    )

    by_itself = ensue("run", rule, "--events", path)
    assert [each["trigger"] for each in by_itself.outputs] == ["299", "599"]
    assert by_itself.out == ensue("run", rule, "--events", path, "--engine", "step").out


def test_csv_on_the_standard_input_is_read_if_the_format_says_so(ensue: Ensue, rules: Path) -> None:
    text = "type,time,user\nFailed,2024-05-06T09:00:00Z,ann\nDone,2024-05-06T09:00:01Z,ann\n"

    assert len(ensue("run", rules, "-e", "-", "--format", "csv", stdin=text).outputs) == 1


@pytest.mark.parametrize(
    "until",
    [
        ["2024-05-06T12:00:00Z"],
        ["2024-05-06 14:00:00", "--timezone", "Europe/Berlin"],
    ],
)
def test_until_lets_the_clock_go_on(
    until: list[str], ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "--events", events, "--until", *until)

    assert answer.outputs[-1]["trigger"] == "timer"
    assert answer.outputs[-1]["time"] == "2024-05-06T10:00:02Z"


def test_an_until_before_the_last_event_is_mentioned(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "--events", events, "--until", "2024-01-01T00:00:00Z")

    assert answer.code == 0
    assert "`--until` lies before the last event (2024-05-06T09:00:05Z)" in answer.err


def test_only_the_outputs_of_one_correlation(ensue: Ensue, rules: Path, events: Path) -> None:
    options = ("--until", "2024-05-06T12:00:00Z", "--correlation", "NothingMore")

    answer = ensue("run", rules, "--events", events, *options)

    assert [output["type"] for output in answer.outputs] == ["Quiet"]
    assert answer.err == "6 events read; 1 output\n"


def test_events_without_a_key_are_counted(ensue: Ensue, rules: Path) -> None:
    answer = ensue("run", rules, "-e", "-", stdin=event(1, "Failed", 0, user=None))

    assert answer.err == (
        "no event had `user`, which `Guessed` reads; they had no attribute at all\n"
        "1 event read, 1 without a key for `Guessed`; 0 outputs\n"
    )


class TestLateness:
    LINES = "\n".join(
        [
            event(1, "Failed", 10),
            event(2, "Done", 30),
            event(3, "Failed", 25),
            event(4, "Failed", 2, "bob"),
        ]
    )

    def test_events_are_put_in_order_within_it(self, ensue: Ensue, rules: Path) -> None:
        answer = ensue("run", rules, "-e", "-", "--lateness", "10 s", stdin=self.LINES)

        assert [output["causes"] for output in answer.outputs] == ["3,2"]

    def test_what_comes_later_is_named_in_the_summary(self, ensue: Ensue, rules: Path) -> None:
        answer = ensue("run", rules, "-e", "-", "--lateness", "10 s", stdin=self.LINES)

        assert answer.err == "4 events read, 1 late (id `4`); 1 output\n"

    def test_and_kept_in_a_file_if_there_is_one(
        self, ensue: Ensue, rules: Path, tmp_path: Path
    ) -> None:
        late = tmp_path / "late.jsonl"

        answer = ensue(
            "run", rules, "-e", "-", "--lateness", "10 s", "--late", late, stdin=self.LINES
        )

        assert [json.loads(line)["id"] for line in late.read_text().splitlines()] == ["4"]
        assert f"1 late (kept in `{late}`)" in answer.err

    def test_without_one_nothing_is_late(self, ensue: Ensue, rules: Path) -> None:
        assert ensue("run", rules, "-e", "-", stdin=self.LINES).err.startswith("4 events read; ")


class TestWrongCalls:
    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            (["--lateness", "5"], "`--lateness`: `5` is no duration"),
            (["--until", "noon"], "`--until`: `noon` is no RFC 3339 time"),
            (["--engine", "steam"], "there is no engine `steam`; choose one of `auto`"),
            (["--correlation", "guessed"], "did you mean `Guessed`?"),
            (["--format", "xml"], "there is no event format `xml`"),
            (["--out", "{events}"], "is also the file of `--events`"),
            (["--late", "{rules}"], "is also the file of the library"),
            (["--late", "a.jsonl", "--dead-letter", "a.jsonl"], "choose another file"),
            (["--out", "{folder}"], "is a directory"),
            (["--frobnicate"], "No such option: --frobnicate"),
        ],
    )
    def test_it_says_what_is_wrong_and_runs_nothing(
        self, ensue: Ensue, rules: Path, events: Path, options: list[str], complaint: str
    ) -> None:
        before = events.read_bytes()
        places = {"events": events, "rules": rules, "folder": rules.parent}

        answer = ensue("run", rules, "-e", events, *(each.format(**places) for each in options))

        assert (answer.code, answer.out) == (2, "")
        assert complaint in answer.err
        assert events.read_bytes() == before

    def test_events_are_needed(self, ensue: Ensue, rules: Path) -> None:
        answer = ensue("run", rules)

        assert answer.code == 2
        assert "--events" in answer.err

    def test_a_file_of_events_that_is_not_there(self, ensue: Ensue, rules: Path) -> None:
        answer = ensue("run", rules, "-e", "none.jsonl")

        assert answer.code == 2
        assert answer.err == (
            "ensue: there is no file `none.jsonl`: give the path of a file of events\n"
        )

    def test_a_table_that_has_no_times(self, ensue: Ensue, rules: Path) -> None:
        answer = ensue("run", rules, "-e", "-", "--format", "csv", stdin="type,user\nFailed,ann\n")

        assert answer.code == 2
        assert "no column `time`" in answer.err

    def test_a_library_with_errors_is_unusable_input(
        self, ensue: Ensue, tmp_path: Path, events: Path
    ) -> None:
        path = tmp_path / "bad.cor"
        path.write_text("eventtype A : B {};")

        answer = ensue("run", path, "-e", events)

        assert (answer.code, answer.out) == (2, "")
        assert f"{path}:1:15: error: " in answer.err
        assert answer.err.endswith("1 error in 1 file\n")


def test_warnings_about_the_library_are_mentioned_in_a_line(
    ensue: Ensue, tmp_path: Path, events: Path
) -> None:
    path = tmp_path / "odd.cor"
    path.write_text("eventtype A {};\nA correlation X (A a) unused:a { case true: push a; }\n")

    answer = ensue("run", path, "-e", events)

    assert answer.code == 0
    assert answer.err.startswith("1 warning about the library; `ensue check ")


@pytest.mark.parametrize(
    ("out", "advice"),
    [
        (".", "give the path of a file"),
        ("nowhere/outputs.jsonl", "create its folder first"),
        ("rules.cor/outputs.jsonl", "check the path for a typo"),
    ],
)
def test_an_output_that_cannot_be_written_says_what_to_do(
    ensue: Ensue, rules: Path, events: Path, out: str, advice: str
) -> None:
    answer = ensue("run", rules, "-e", events, "--out", rules.parent / out)

    assert answer.code == 2
    assert advice in answer.err


def test_events_from_nowhere_are_asked_for(ensue: Ensue, rules: Path) -> None:
    assert "give the path of a file of events, or `-`" in ensue("run", rules, "-e", "").err


def test_a_benchmark_asks_for_its_file_before_it_measures(ensue: Ensue, tmp_path: Path) -> None:
    answer = ensue("bench", "machine", "--json", tmp_path)

    assert answer.code == 2
    assert "is a directory: give the path of a file" in answer.err


class TestHints:
    def test_events_of_types_that_nobody_declares_are_mentioned(
        self, ensue: Ensue, rules: Path
    ) -> None:
        lines = "\n".join([event(1, "login_failed", 0), event(2, "door", 1)])

        answer = ensue("run", rules, "-e", "-", stdin=lines)

        assert (answer.code, answer.out) == (0, "")
        assert "no event has a type that the library declares" in answer.err
        assert "`door`, `login_failed`; known: `Alarm`, " in answer.err

    def test_a_type_that_is_nearly_one_is_mentioned_where_nothing_was_found(
        self, ensue: Ensue, rules: Path
    ) -> None:
        lines = "\n".join([event(1, "failed", 0), event(2, "Done", 1)])

        answer = ensue("run", rules, "-e", "-", "--engine", "batch", stdin=lines)

        assert "1 event of type `failed` is read by no rule; did you mean `Failed`?" in answer.err

    def test_types_that_no_rule_reads_are_counted_also_where_something_was_found(
        self, ensue: Ensue, rules: Path, events: Path
    ) -> None:
        lines = [events.read_text().strip(), event(7, "Quiet", 9), event(8, "door", 9)]

        answer = ensue("run", rules, "-e", "-", stdin="\n".join([*lines, event(9, "door", 9)]))

        assert answer.err == (
            "3 events of 2 types, as `door`, are read by no rule\n9 events read; 3 outputs\n"
        )

    @pytest.mark.parametrize("engine", ["step", "batch"])
    def test_a_key_that_is_a_struct_is_said_with_what_to_write(
        self, ensue: Ensue, tmp_path: Path, engine: str
    ) -> None:
        rules = tmp_path / "struct.cor"
        rules.write_text(
            "eventtype A {}; eventtype O {};"
            "O correlation R (A a, A b) l:(a ; b) by host { case l: push new O {}; }"
        )
        lines = [event(n, "A", n, data={"host": {"name": "h", "ip": "i"}}) for n in (1, 2)]

        answer = ensue("run", rules, "-e", "-", "--engine", engine, stdin="\n".join(lines))

        assert (
            "2 events without a key: `R` is `by host`, which is a struct of `name`, `ip`, and no"
            " key: write `by host.name`" in answer.err
        )

    def test_an_input_of_which_nothing_could_be_read_is_a_finding(
        self, ensue: Ensue, rules: Path
    ) -> None:
        lines = [event(n, "Failed", n).replace('Z"', '"') for n in (1, 2)]

        answer = ensue("run", rules, "-e", "-", stdin="\n".join(lines))

        assert answer.code == 1
        assert "not one of 2 records could be read; the first is stdin:1\n" in answer.err
        assert (
            "2 times have no offset, as in stdin:1: give a time zone, as in `--timezone UTC`"
            in answer.err
        )
        assert answer.err.endswith("0 events read, 2 refused; 0 outputs\n")

    def test_nothing_to_read_and_something_that_was_read_are_no_findings(
        self, ensue: Ensue, rules: Path
    ) -> None:
        assert ensue("run", rules, "-e", "-", stdin="").code == 0
        assert ensue("run", rules, "-e", "-", stdin=f"{event(1, 'Failed', 1)}\nbad").code == 0

    def test_a_file_that_holds_no_json_lines_says_so_once(
        self, ensue: Ensue, rules: Path, events: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "array.json"
        path.write_text(f"[{', '.join(events.read_text().splitlines())}]")

        assert "no line is a JSON object" in ensue("run", rules, "-e", path).err

    def test_objects_that_are_no_events_get_no_advice_on_the_format(
        self, ensue: Ensue, rules: Path
    ) -> None:
        answer = ensue("run", rules, "-e", "-", stdin='{"id": "1"}\n')

        assert "no line is" not in answer.err
