"""Golden cases: a library, events and the expected outputs, in TOML files that people write.

`read_cases` reads the `Case`s of a file, or raises one `CaseError` with all its mistakes.
`run_case` runs a case on an engine and returns a `CaseResult` with all differences between expected
and actual outputs. `render` formats a failed result as text. The `ensue test` command and the
project's own test suite are thin layers over these three functions.
"""

from ensue.casefile.case import Case, Expected, ExpectedFinding, ExpectedOutput, Recorded
from ensue.casefile.comparison import CaseResult, case_events, run_case
from ensue.casefile.parameters import with_parameters
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
    "with_parameters",
]
