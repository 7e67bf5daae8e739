"""Imports: each file once, what is imported first, and mistakes in the file that has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import ensue
from ensue.errors import LibraryError
from ensue.lang.expanding.rewriting import bundled
from ensue.lang.parsing.files import read_source
from ensue.lang.parsing.importing import imports_of, without_imports

TYPES = "parameter long limit = 2;\neventtype A {};\neventtype Out {};\n"
TEMPLATE = """
import '../types.cor';
template Out correlation Many (A a) a{limit} { case true: push new Out {}; }
"""
RULES = """// what runs
import "shared/many.cor";
import "types.cor"; /* again */ import "./shared/../types.cor"
use Many as Two;
use Many as Three with { limit = 3 };
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path, {"types.cor": TYPES, "shared/many.cor": TEMPLATE, "rules.cor": RULES})


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def mistakes(path: Path, inside: Path | None = None) -> list[tuple[str, int, str, str | None]]:
    with pytest.raises(LibraryError) as refused:
        ensue.load(path, inside=inside)
    return [
        (Path(each.file).name, each.line, each.code, each.hint)
        for each in refused.value.diagnostics
    ]


def test_an_import_brings_all_definitions_of_another_file_once(folder: Path) -> None:
    library = ensue.load(folder / "rules.cor")

    assert library.types.names == ("A", "Out")
    assert library.correlations.names == ("Two", "Three")
    assert library.warnings == ()


def test_files_that_import_each_other_are_read_once(tmp_path: Path) -> None:
    files = {
        "a.cor": "import 'b.cor'; eventtype A {};",
        "b.cor": "import 'a.cor'; eventtype B : A {};",
    }

    assert ensue.load(written(tmp_path, files) / "a.cor").types.names == ("B", "A")
    assert ensue.load(tmp_path / "b.cor", tmp_path / "a.cor").types.names == ("A", "B")


def test_a_folder_reads_what_its_files_import_once(folder: Path) -> None:
    assert ensue.load(folder).correlations.names == ("Two", "Three")


def test_a_mistake_in_an_imported_file_is_told_of_that_file(folder: Path) -> None:
    (folder / "types.cor").write_text(TYPES + "eventtype B : Nothing {};\n")

    assert [each[:3] for each in mistakes(folder / "rules.cor")] == [
        ("types.cor", 4, "unknown-type")
    ]


def test_names_are_unique_over_all_files(folder: Path) -> None:
    (folder / "shared/many.cor").write_text(TEMPLATE + "eventtype A {};\n")

    assert [each[:3] for each in mistakes(folder / "rules.cor")] == [
        ("many.cor", 4, "duplicate-type")
    ]


def test_a_file_that_is_not_there_is_told_at_its_import(folder: Path) -> None:
    (folder / "shared/many.cor").write_text("import '../typs.cor';\n")

    assert mistakes(folder / "rules.cor") == [
        ("many.cor", 1, "import-not-found", "did you mean `types.cor`?")
    ]


def test_while_a_file_is_missing_other_mistakes_are_told_too(tmp_path: Path) -> None:
    """But not of names that it may declare: types, rules, parameters."""
    files = {
        "types.cor": "eventtype Own { attribute long v };\nOwn correlation Q (Own a) b { }\n",
        "rules.cor": 'import "missing.cor";\nimport "types.cor";\n'
        "eventtype B : Base { attribute long n; };\n"
        "B correlation X (A a where v > limit, B b from Lost) (a ; b){count} within window"
        " having b.w > limit { case tru: push new B { n = b.m, inherited = a.x }; }\n"
        "use Temp as T (a from Elsewhere) with { some = 3 };\n",
    }
    root = written(tmp_path, files)

    found = [each[:3] for each in mistakes(root / "rules.cor")]

    assert found == [
        ("types.cor", 1, "syntax"),
        ("types.cor", 2, "never-pushes"),
        ("types.cor", 2, "unknown-port"),
        ("rules.cor", 1, "import-not-found"),
        ("rules.cor", 4, "unknown-label"),
    ]
    with pytest.raises(LibraryError) as caught:
        ensue.load(root / "rules.cor", parameters={"limit": 3})
    assert len(caught.value.diagnostics) >= 4


def test_nothing_is_read_from_outside_of_the_folder(folder: Path) -> None:
    ensue.load(folder / "rules.cor", inside=folder)

    (found,) = mistakes(folder / "shared/many.cor", inside=folder / "shared")
    assert found[:3] == ("many.cor", 2, "import-not-found")


def test_a_link_that_leads_out_of_the_folder_is_outside(folder: Path) -> None:
    (folder / "shared/link.cor").symlink_to(folder / "types.cor")
    (folder / "shared/many.cor").write_text("import 'link.cor';\n")

    (found,) = mistakes(folder / "shared/many.cor", inside=folder / "shared")
    assert found[:3] == ("many.cor", 1, "import-not-found")


def test_an_import_behind_a_definition_is_refused(folder: Path) -> None:
    (folder / "rules.cor").write_text("eventtype B {};\nimport 'types.cor';\n")

    assert ("rules.cor", 2, "late-import") in [each[:3] for each in mistakes(folder / "rules.cor")]


def test_a_text_imports_nothing() -> None:
    with pytest.raises(LibraryError) as refused:
        ensue.parse("import 'types.cor';")

    assert [each.code for each in refused.value.diagnostics] == ["import-not-found"]


def test_the_head_of_a_text_is_looked_at_in_no_time() -> None:
    head = "import 'a';" + " \n" * 100_000 + "/* * */" * 1_000

    assert [each[0] for each in imports_of(head + "imports")] == ["a"]
    assert without_imports(" // x\nimport 'a' /**/ ; import \"b\"\neventtype A {};").split() == [
        "//",
        "x",
        "eventtype",
        "A",
        "{};",
    ]


def test_a_bundle_says_the_same_without_imports(folder: Path) -> None:
    source, _ = read_source([folder / "rules.cor"])
    text = bundled(source.files)

    assert list(imports_of(text)) == []
    assert "// what runs" in text
    again, library = ensue.parse(text), ensue.load(folder / "rules.cor")
    assert again.running_text == library.running_text
