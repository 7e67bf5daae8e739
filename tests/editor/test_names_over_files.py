"""Rules and parameters that files name of each other: definitions and new names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.editor.checking import check_file
from ensue.editor.features.completion import complete
from ensue.editor.features.renaming import rename
from ensue.editor.project import Project

TYPES = "parameter long limit = 2;\neventtype A {};\n"
MANY = (
    "import 'types.cor';\n"
    "template A correlation Many (A a from outside) a{limit} { case true: push a; }\n"
)
RULES = (
    'import "shared/many.cor";\n'
    "use Many as Two with { limit = 3 };\n"
    "A correlation Reads (A a from Two) a{limit} { case true: push a; }\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "shared").mkdir()
    found = Project()
    found.folders = [tmp_path]
    for name, text in (
        ("shared/types.cor", TYPES),
        ("shared/many.cor", MANY),
        ("rules.cor", RULES),
    ):
        (tmp_path / name).write_text(text)
    return found


def places(project: Project, path: Path, text: str, word: str) -> list[tuple[str, int]]:
    at = project.symbols_at(path, text.index(word))
    assert at is not None
    return [
        (place.path.name, place.found.start)
        for symbol in at[1]
        for place in project.definitions(symbol)
    ]


def test_a_name_leads_to_its_definition_in_another_file(project: Project, tmp_path: Path) -> None:
    rules = tmp_path / "rules.cor"

    assert check_file(project, rules).diagnostics == ()
    assert places(project, rules, RULES, "Two)") == [("rules.cor", RULES.index("Two"))]
    assert places(project, rules, RULES, "Many as") == [("many.cor", MANY.index("Many"))]
    assert places(project, rules, RULES, "limit = 3") == [("types.cor", TYPES.index("limit"))]
    assert places(project, rules, RULES, "limit}") == [("types.cor", TYPES.index("limit"))]


def test_an_import_leads_to_the_file(project: Project, tmp_path: Path) -> None:
    rules, many = tmp_path / "rules.cor", tmp_path / "shared/many.cor"

    assert project.imported_at(rules, RULES.index("many.cor")) == many
    assert project.imported_at(rules, RULES.index("use Many")) is None
    assert project.imported_at(many, MANY.index("types.cor")) == tmp_path / "shared/types.cor"
    project.open(rules, RULES.replace("many.cor", "mny.cor"))
    assert project.imported_at(rules, RULES.index("many.cor")) is None


def test_a_port_in_a_use_leads_to_the_rule_that_is_used(project: Project, tmp_path: Path) -> None:
    rules, many = tmp_path / "rules.cor", tmp_path / "shared/many.cor"
    text = RULES + "use Many as One (a from Two);\nuse One as Again (a from outside, b from Two);\n"
    project.open(rules, text)
    declared = [("many.cor", MANY.index("a from"))]

    assert places(project, rules, text, "a from Two);") == declared
    assert places(project, rules, text, "a from outside") == declared
    assert places(project, rules, text, "b from") == []
    renamed = rename(project, many, MANY.index("a from"), "one")
    assert {path: len(edits) for path, edits in renamed.items()} == {many: 3, rules: 2}


def test_mistakes_that_were_there_before_do_not_forbid_a_new_name(
    project: Project, tmp_path: Path
) -> None:
    path = tmp_path / "rules.cor"
    wrong = RULES.replace("limit = 3", "limit = 0")
    project.open(path, wrong)
    assert [each.code for each in check_file(project, path).diagnostics] == ["bad-count"]

    renamed = rename(project, path, wrong.index("Many as"), "Lots")

    assert {each.name: len(edits) for each, edits in renamed.items()} == {
        "rules.cor": 1,
        "many.cor": 1,
    }


def test_an_import_that_is_not_there_is_told(project: Project, tmp_path: Path) -> None:
    project.open(tmp_path / "rules.cor", RULES.replace("many.cor", "mny.cor"))

    codes = [each.code for each in check_file(project, tmp_path / "rules.cor").diagnostics]
    assert "import-not-found" in codes


def test_a_rule_of_the_same_file_gets_another_name_everywhere(
    project: Project, tmp_path: Path
) -> None:
    path = tmp_path / "rules.cor"

    (edits,) = rename(project, path, RULES.index("Two"), "Three").values()

    assert [edit.start for edit in edits] == [RULES.index("Two"), RULES.index("Two)")]


def test_what_other_files_import_gets_another_name_in_all_of_them(
    project: Project, tmp_path: Path
) -> None:
    rules, many, types = (
        tmp_path / name for name in ("rules.cor", "shared/many.cor", "shared/types.cor")
    )

    template = rename(project, rules, RULES.index("Many as"), "Often")
    assert {path: len(edits) for path, edits in template.items()} == {many: 1, rules: 1}
    parameter = rename(project, many, MANY.index("limit"), "most")
    assert {path: len(edits) for path, edits in parameter.items()} == {types: 1, many: 1, rules: 2}


def test_what_can_be_named_is_offered(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "rules.cor"
    begun = RULES + "A correlation Next (A a from "
    project.open(path, begun)

    labels = {each.label for each in complete(project, path, len(begun))}

    assert {"outside", "Two", "Reads", "Many"} <= labels
