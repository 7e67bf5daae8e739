"""The language is read from a package that is one archive, as workers of a cluster have it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import ensue

PROGRAM = """
import ensue
from ensue.lang.expressions.text.parsing import parse_expression

assert ".zip" in ensue.__file__, ensue.__file__
text = '''
eventtype A { attribute long n; };
A correlation Large (A a where n > 3) a { case true: push a; }
'''
parse_expression("n > 3")
print(ensue.Library.from_tables(ensue.parse(text).tables()).correlations.names)
"""


def test_libraries_expressions_and_tables_are_read_from_an_archive(tmp_path: Path) -> None:
    root = Path(next(iter(ensue.__path__)))
    archive = tmp_path / "ensue.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for file in root.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                out.write(file, Path("ensue") / file.relative_to(root))
    program = f"import sys\nsys.path.insert(0, {str(archive)!r})\n{PROGRAM}"

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("('Large',)\n", "")
