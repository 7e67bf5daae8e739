"""The public surface: small, sorted, complete, and quick to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ensue

PUBLIC = [
    "CaseError",
    "EnsueError",
    "Event",
    "EventError",
    "Library",
    "LibraryError",
    "SnapshotError",
    "UsageError",
    "__version__",
    "build",
    "correlate",
    "load",
    "parse",
]


def test_the_public_names_do_not_drift() -> None:
    """A name that comes or goes is a decision, and is made here too."""
    assert ensue.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    """Names are imported when they are used; a wrong home would show only then."""
    assert getattr(ensue, name) is not None
    assert name in dir(ensue)


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match="it has CaseError, EnsueError"):
        _ = ensue.corelate


def _loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_ensue_loads_nothing_heavy() -> None:
    """Neither Spark nor a broker, and not even the parser, before something needs it."""
    heavy = {"lark", "numba", "numpy", "pandas", "pyarrow", "pyspark", "rich", "typer"}

    assert not heavy & _loaded_after("import ensue")


def test_running_a_library_needs_neither_arrow_nor_spark() -> None:
    code = "import ensue\nensue.parse('eventtype A {};').start()"

    assert not {"numba", "pandas", "pyarrow", "pyspark", "typer"} & _loaded_after(code)


def test_errors_survive_pickling() -> None:
    """Workers on other machines raise them."""
    import pickle

    with pytest.raises(ensue.LibraryError) as caught:
        ensue.parse("eventtype A : B {};")
    again = pickle.loads(pickle.dumps(caught.value))

    assert str(again) == str(caught.value)
    assert again.diagnostics == caught.value.diagnostics
