"""The journal keeps events in runs, and gives each of them back by its number."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import UsageError
from ensue.server.station.entries import EVENT, OUTPUT, TIME, Entry
from ensue.server.station.record.journal import FORMAT, LONGEST_RUN, Journal


def filled(path: Path, kinds: list[int], commits: int) -> tuple[Journal, list[Entry]]:
    entries = [
        Entry(seq, kind, b'{"id":"%d"}' % seq)
        if kind != OUTPUT
        else Entry(seq, kind, b"{}", "lib", "Rule", None, f"o{seq}")
        for seq, kind in enumerate(kinds, 1)
    ]
    journal = Journal(path)
    for begin in range(0, len(entries), commits):
        with journal.write():
            journal.append(entries[begin : begin + commits])
    return journal, entries


@given(
    st.lists(st.sampled_from([EVENT, EVENT, EVENT, OUTPUT, TIME]), max_size=40),
    st.integers(1, 40),
    st.integers(0, 45),
    st.integers(0, 45),
    st.integers(1, 50),
)
def test_pages_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    kinds: list[int],
    commits: int,
    after: int,
    until: int,
    limit: int,
) -> None:
    journal, entries = filled(tmp_path_factory.mktemp("j") / "journal.db", kinds, commits)

    inside = [each for each in entries if after < each.seq <= until]
    assert journal.page(after, until, limit) == inside[:limit]
    inputs = [each for each in inside if each.kind != OUTPUT]
    assert journal.inputs(after, until, limit) == inputs[:limit]
    right = next((each for each in entries if each.seq == after), None)
    assert journal.entry(after) == right
    assert journal.last == len(entries)
    assert journal.first == min(1, len(entries))
    journal.close()


def test_long_runs_are_cut_and_trimmed_by_whole_rows(tmp_path: Path) -> None:
    journal, _ = filled(tmp_path / "journal.db", [EVENT] * (3 * LONGEST_RUN), 10_000)

    with journal.write():
        journal.trim(LONGEST_RUN + 5)
    assert journal.first == LONGEST_RUN + 1
    assert journal.first_of_latest_events(10, journal.last) == 2 * LONGEST_RUN + 1
    assert journal.first_of_latest_events(LONGEST_RUN + 1, journal.last) == LONGEST_RUN + 1
    found = journal.events_containing(b'"300"', 2 * LONGEST_RUN, 5)
    assert [each.seq for each in found] == [300]
    assert journal.events_containing(b'"300"', 299, 5) == []
    journal.close()


def test_a_journal_of_format_1_is_read_and_written_on(tmp_path: Path) -> None:
    journal, _ = filled(tmp_path / "journal.db", [], 1)
    journal.writer.executemany(
        "INSERT INTO journal (seq, kind, body) VALUES (?, ?, ?)",
        [(seq, EVENT, b'{"id":"%d"}' % seq) for seq in range(1, 5)],
    )
    journal.writer.execute("UPDATE marks SET value = 1 WHERE name = 'format'")
    journal.close()
    journal = Journal(tmp_path / "journal.db")
    with journal.write():
        journal.append([Entry(seq, EVENT, b'{"id":"%d"}' % seq) for seq in (5, 6)])

    assert [(each.seq, each.body) for each in journal.page(1, 99)] == [
        (seq, b'{"id":"%d"}' % seq) for seq in range(2, 7)
    ]
    assert (journal.first, journal.last, journal.mark("format")) == (1, 6, FORMAT)
    journal.close()


def test_a_journal_of_a_later_format_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.writer.execute("UPDATE marks SET value = 99 WHERE name = 'format'")
    journal.close()

    with pytest.raises(UsageError, match="is of format 99"):
        Journal(tmp_path / "journal.db")
