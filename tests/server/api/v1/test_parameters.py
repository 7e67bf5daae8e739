"""Parameters and imports of libraries on a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ensue.errors import UsageError
from ensue.federation.gateway import Gateway
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
    assert told == {"hot": {"type": "double", "default": 60.0, "value": 60.0}}
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


def test_every_value_that_does_not_fit_is_told_at_its_name(live: Live) -> None:
    live.put("parameter long limit = 3;\nparameter duration pause = 5 min;" + TYPES + RULES)

    for ask in (live.client.put, live.client.post):
        answer = ask("/v1/libraries/heat/parameters", json={"limit": "x", "pause": "5", "hot": 1})
        assert answer.status_code == 422
        told = answer.json()["parameters"]
        assert list(told) == ["limit", "pause"]
        assert "whole number" in told["limit"]
        assert "write a number and one of" in told["pause"]


def test_what_values_would_change_is_told_and_nothing_is_changed(live: Live) -> None:
    live.put(TYPES + RULES)

    told = live.client.post("/v1/libraries/heat/parameters", json={"hot": "40"})

    found = told.json()
    assert "+parameter double hot = 40.0; // degrees" in found["unified"]
    assert (found["rules"]["kept"], found["rules"]["changed"]) == (["Thrice"], ["Twice"])
    now = live.client.get("/v1/libraries/heat")
    assert (now.json()["version"], now.headers["ETag"]) == (1, told.headers["ETag"])


def test_a_default_is_what_the_text_said_before_values_were_set(live: Live) -> None:
    path = "/v1/libraries/heat/parameters"
    more = 'parameter string name = "a;b";' + TYPES + RULES
    live.put(RULES + TYPES)
    live.put(more)
    live.client.put(path, json={"hot": 40})
    live.client.put(path, json={"hot": 30, "name": "c"})

    told = live.client.get(path).json()
    assert told["hot"] == {"type": "double", "default": 60.0, "value": 30.0}
    assert told["name"] == {"type": "string", "default": "a;b", "value": "c"}

    live.put(more.replace("60.0", "50.0").replace("{3}", "{4}"))
    assert live.client.get(path).json()["hot"]["default"] == 50.0


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


BOTH = """
[server]
data = "data"

[[library]]
name = "heat"
file = "heat.cor"

[parameters]
hot = 40
limit = 5

[gateway]
name = "office"

[[service]]
name = "bus"
kind = "memory"

[site]
library = "site.cor"
sites = "sites.toml"
"""
SITE = """
import "limits.cor";
eventtype A {};
A correlation Many (A a) a{limit} { case true: push a; }
"""


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A server and a gateway in one file, each with a library of its own."""
    (tmp_path / "heat.cor").write_text(TYPES + RULES)
    (tmp_path / "site.cor").write_text(SITE)
    (tmp_path / "limits.cor").write_text("parameter long limit = 3;")
    (tmp_path / "sites.toml").write_text('[[site]]\nname = "office"\ntypes = ["A"]\n')
    (tmp_path / "both.toml").write_text(BOTH)
    return tmp_path / "both.toml"


def begun(path: Path) -> tuple[Mapping[str, str], Gateway]:
    """The texts of the server's libraries, and the gateway, as `ensue serve` begins with them."""
    given = read_settings(path)
    return library_texts(given), Gateway.from_config(given.gateway, given.where)


def test_a_server_and_a_gateway_in_one_file_share_the_values(both: Path) -> None:
    texts, gateway = begun(both)

    assert "parameter double hot = 40.0;" in texts["heat"]
    (rule,) = gateway._site._placement.rules.values()  # type: ignore[union-attr]
    assert "count=5" in str(rule)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("limit = 5", "limmit = 5", "there is no parameter `limmit`; did you mean `limit`?"),
        ("hot = 40", 'hot = "warm"', "`warm` does not fit parameter `hot`, a `double`"),
        ("limit = 5", 'limit = "few"', "`few` does not fit parameter `limit`, a `long`"),
        ('"site.cor"', '"none.cor"', "none.cor` cannot be read"),
    ],
)
def test_a_value_for_neither_of_the_two_is_told(
    both: Path, old: str, new: str, problem: str
) -> None:
    both.write_text(BOTH.replace(old, new))

    with pytest.raises(UsageError) as caught:
        begun(both)
    assert problem in str(caught.value)
