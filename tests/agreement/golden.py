"""Golden cases as trials: each by itself, or with other cases in one library over one stream.

A case that runs is a trial whose judge is the reference engine, which has to pass all cases
(`tests/test_golden_cases.py`). With a suffix behind the names of its types and rules it can stand
beside other cases; where a text is about such names, so that the renamed case means something else,
it stands by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

import ensue
from ensue.casefile import Case, case_events, find_case_files, read_cases
from ensue.errors import EnsueError

from .observed import Observed
from .trials import MergedTrial, ReferenceTrial, Trial
from .ways import Way, observe

ROOT = Path(__file__).parents[2]
SHORT_SPAN = 30_000_000


class GoldenTrial(ReferenceTrial):
    """The library and the accepted events of a case."""

    name = ""

    @classmethod
    def of(cls, case: Case, number: int) -> GoldenTrial:
        text = case.library if isinstance(case.library, str) else case.library.read_text()
        library = ensue.parse(text, parameters=case.parameters)
        if library.checked.written is not None:
            # Parameters and templates of several cases would have one name.
            text = library.running_text
        made = cls(number, text, (), case.until)
        made._events = case_events(case, made.library.checked.types)[0]
        made.lateness = case.lateness
        made.name = str(case)
        return made

    @cached_property
    def expected(self) -> Observed:
        return observe(self, Way("reference"))

    @property
    def spans_little(self) -> bool:
        """Whether the timers of other cases may go on for as long as its clock does."""
        times = [*(event.time for event in self._events), *([self.until] if self.until else [])]
        return all(0 <= time < SHORT_SPAN for time in times)

    def renamed(self, suffix: str) -> GoldenTrial | None:
        """The trial with a suffix behind names; None where it would mean something else."""
        library = self.library.checked
        names = [each.name for each in (*library.tree.types, *library.correlations)]
        said = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
        types = {each.wire_name: each.wire_name + suffix for each in library.tree.types}
        events = [
            msgspec.structs.replace(each, type=types.get(each.type, each.type))
            for each in self._events
        ]
        made = GoldenTrial(self.seed, said.sub(rf"\1{suffix}", self.text), events, self.until)
        made.name = self.name
        try:
            found = made.outputs(made.by_time, made.until)
        except EnsueError:
            return None
        before = self.outputs(self.by_time, self.until)
        return made if _without(suffix, found) == before else None

    def __str__(self) -> str:
        return f"{self.name}\n{super().__str__()}"


def _without(suffix: str, found: Sequence[Mapping[str, Any]]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(found).decode().replace(suffix, ""))


def golden_trials() -> Iterator[GoldenTrial]:
    """The golden cases that run."""
    files = [*find_case_files(ROOT / "cases"), *sorted((ROOT / "examples").glob("*/cases.toml"))]
    cases = [case for file in files for case in read_cases(file) if not case.expected.errors]
    return (GoldenTrial.of(case, number) for number, case in enumerate(cases))


def cases_together(cases: Iterable[GoldenTrial]) -> list[Trial]:
    """Golden cases as few trials: nearly all in one library, the rest by themselves."""
    beside: list[Trial] = []
    alone: list[Trial] = []
    for each in cases:
        renamed = each.renamed(f"x{each.seed}") if each.spans_little else None
        (alone if renamed is None else beside).append(renamed or each)
    return [MergedTrial(beside), *alone]
