"""Golden cases: a library, events, and what must come of them, as a TOML file that people write.

`read_cases` makes `Case`s of a file, or says everything that is wrong with it in one `CaseError`.
`run_case` lets an engine run one and returns a `CaseResult` with each difference between what was
expected and what came. `render` shows a result that failed to a person. The `ensue test` command
and the project's own test suite are both thin layers over these three.
"""

from ensue.casefile.case import Case, Expected, ExpectedFinding, ExpectedOutput, Recorded
from ensue.casefile.comparison import CaseResult, case_events, run_case
from ensue.casefile.reading import find_case_files, read_cases
from ensue.casefile.rendering import render

__all__ = [
    "Case",
    "CaseResult",
    "Expected",
    "ExpectedFinding",
    "ExpectedOutput",
    "Recorded",
    "case_events",
    "find_case_files",
    "read_cases",
    "render",
    "run_case",
]
