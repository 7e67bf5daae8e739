"""Parameters and imports of libraries on a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ensue.errors import UsageError
from ensue.server.settings.libraries import library_texts
from ensue.server.settings.reading import read_settings
from tests.server.live import Live, reading, serving, settings

TYPES = """
parameter double hot = 60.0; // degrees
eventtype Reading { attribute string sensor; attribute double celsius; };
eventtype Hot { attribute string sensor; };
"""
RULES = """
Hot correlation Twice (Reading high where celsius > hot) high{2} by sensor
{
    case true: push new Hot { sensor = high.sensor };
}
Hot correlation Thrice (Reading any) any{3} by sensor
{
    case true: push new Hot { sensor = any.sensor };
}
"""


@pytest.fixture
def live() -> Iterator[Live]:
    with serving(settings()) as running:
        yield running


def counts(live: Live) -> dict[str, int]:
    return {each["rule"]: each["outputs"] for each in live.client.get("/v1/rules").json()}


def test_a_parameter_that_is_set_keeps_the_state_of_rules_without_it(live: Live) -> None:
    live.put(TYPES + RULES)
    live.publish([reading(1, "a", 50), reading(2, "a", 55)])

    told = live.client.get("/v1/libraries/heat/parameters").json()
    assert told == {"hot": {"type": "double", "value": 60.0}}
    change = live.client.put("/v1/libraries/heat/parameters", json={"hot": 40}).json()
    live.publish([reading(3, "a", 45)])

    assert (change["version"], change["kept"], change["changed"]) == (2, ["Thrice"], ["Twice"])
    assert counts(live) == {"Twice": 0, "Thrice": 1}
    library = live.client.get("/v1/libraries/heat").json()
    assert "parameter double hot = 40.0; // degrees" in library["text"]
    assert library["note"] == "parameters: hot = 40"


@pytest.mark.parametrize("given", [{"hot": "warm"}, {"hott": 1}, {"hot": None}, [1]])
def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(
    live: Live, given: object
) -> None:
    live.put(TYPES + RULES)

    answer = live.client.put("/v1/libraries/heat/parameters", json=given)

    assert answer.status_code in (400, 422)
    assert live.client.get("/v1/libraries/heat").json()["version"] == 1


def test_libraries_import_each_other_by_their_names(live: Live) -> None:
    live.put(TYPES, name="types")
    change = live.put('import "types";\n' + RULES)
    live.publish([reading(1, "a", 70), reading(2, "a", 70)])

    assert change["added"] == ["Thrice", "Twice"] or change["added"] == ["Twice", "Thrice"]
    assert counts(live)["Twice"] == 1

    answer = live.client.put(
        "/v1/libraries/more",
        content='import "typs";\n',
        headers={"Content-Type": "text/plain"},
    )
    assert answer.status_code == 422
    (found,) = answer.json()["diagnostics"]
    assert (found["code"], found["hint"]) == ("import-not-found", "did you mean `types`?")


def test_a_file_of_settings_gives_values_and_imports_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/types.cor").write_text(TYPES)
    (tmp_path / "rules/heat.cor").write_text('import "types.cor";\n' + RULES)
    file = tmp_path / "server.toml"
    file.write_text('[[library]]\nname = "heat"\nfile = "rules/heat.cor"\n[parameters]\nhot = 7\n')

    (text,) = library_texts(read_settings(file)).values()
    assert "parameter double hot = 7.0; // degrees" in text
    assert "import " not in text

    wrong = tmp_path / "wrong.toml"
    wrong.write_text(file.read_text().replace("hot = 7", "hott = 7"))
    with pytest.raises(UsageError, match=r"no parameter `hott`; did you mean `hot`\?"):
        library_texts(read_settings(wrong))

    (tmp_path / "outside.cor").write_text(TYPES)
    (tmp_path / "rules/heat.cor").write_text('import "../outside.cor";\n' + RULES)
    with pytest.raises(UsageError, match="outside of the folder"):
        library_texts(read_settings(file))
