"""The journal keeps events in runs, and gives each of them back by its number."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import UsageError
from ensue.server.station.entries import EVENT, OUTPUT, TIME, JournalEntry
from ensue.server.station.record.journal import LONGEST_RUN, ServerJournal


def filled(path: Path, kinds: list[int], commits: int) -> tuple[ServerJournal, list[JournalEntry]]:
    entries = [
        JournalEntry(seq, kind, b'{"id":"%d"}' % seq)
        if kind != OUTPUT
        else JournalEntry(seq, kind, b"{}", "lib", "Rule", None, f"o{seq}")
        for seq, kind in enumerate(kinds, 1)
    ]
    journal = ServerJournal(path)
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


@pytest.mark.parametrize("number", [1, 2, 99])
def test_a_journal_of_another_format_is_refused(number: int, tmp_path: Path) -> None:
    journal = ServerJournal(tmp_path / "journal.db")
    journal.writer.execute("UPDATE marks SET value = ? WHERE name = 'format'", (number,))
    journal.close()

    with pytest.raises(UsageError, match=f"is of format {number}, .* begin a new journal"):
        ServerJournal(tmp_path / "journal.db")
