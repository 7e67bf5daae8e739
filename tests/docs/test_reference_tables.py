"""The tables of the documentation say what the code says, so that neither can drift."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import typer

import ensue
import ensue.errors
import ensue.lang
import ensue.machine.analyses
from ensue.casefile.case import OUTPUT_FIELDS
from ensue.casefile.reading import KEYS
from ensue.cli import app
from ensue.cli.spark_run import SPARK
from ensue.engine.choosing import ENGINES
from ensue.engine.run import Run
from ensue.events.types import SCALARS
from ensue.lang import builder
from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.limits import DEFAULT_LIMITS, Limits
from ensue.lang.parsing.parser import grammar
from ensue.library import Library
from ensue_bench import SUBJECTS

from .pages import ROOT

LANGUAGE = (ROOT / "docs" / "language.md").read_text("utf-8")
COMMAND_LINE = (ROOT / "docs" / "cli.md").read_text("utf-8")
CHOICE_OF_ENGINES = (ROOT / "docs" / "engines.md").read_text("utf-8")
PYTHON = (ROOT / "docs" / "python.md").read_text("utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")
COMMANDS = getattr(typer.main.get_command(app), "commands")  # noqa: B009 - typed as a Command
# By the name of what is called with a code; `report` stands for either, as the moment demands.
SEVERITIES = {
    "error": "error",
    "warning": "warning",
    "report": "error or warning",
    "UnreadableError": "error",
}


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, without its head."""
    section = LANGUAGE.split(f"{heading}\n", 1)[1].split("\n#", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def reported_codes() -> set[tuple[str, str]]:
    """Every code that checks and analyses report, with its severity, read from their source."""
    codes = {(f"limit-{each.name}", "error") for each in fields(Limits)}
    rooms = (ensue.lang.__path__[0], ensue.machine.analyses.__path__[0])
    for path in (each for room in rooms for each in Path(room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                called = ast.unparse(node.func).rpartition(".")[2]
                code = node.args[0]
                if (
                    called in SEVERITIES
                    and isinstance(code, ast.Constant)
                    and isinstance(code.value, str)
                ):
                    codes.add((code.value, SEVERITIES[called]))
    return codes


def test_the_table_of_diagnostics_holds_every_code_with_its_severity() -> None:
    documented = {
        (code, severity)
        for codes, severity, _ in table("## Diagnostics")
        for code in re.findall(r"`([a-z-]+)`", codes)
    }

    assert documented == reported_codes()


def test_the_table_of_limits_holds_every_limit_with_its_value_and_what_it_bounds() -> None:
    documented = [
        (name.strip("`"), int(allowed.replace(",", "")), bounds)
        for name, allowed, bounds in table("## Limits")
    ]

    assert documented == [
        (each.name, getattr(DEFAULT_LIMITS, each.name), each.metadata["bounds"])
        for each in fields(Limits)
    ]


def test_the_table_of_functions_holds_every_function_with_its_parameters_and_result() -> None:
    documented = {
        (name, tuple(parameters.split(", ")), result)
        for calls, result, _ in table("### Functions")
        for name, parameters in re.findall(r"`([A-Z_]+)\(([^)]*)\)`", calls)
    }
    expected = set()
    for name, function in FUNCTIONS.items():
        for count in range(function.required, len(function.parameters) + 1):
            kinds = function.parameters[:count]
            more = (function.more, "...") if function.more else ()
            expected.add((name, (*kinds, *more), function.result))

    assert documented == expected


def test_the_table_of_attribute_types_holds_every_type() -> None:
    documented = {
        name for types, _, _ in table("## Event types") for name in re.findall(r"`([^`]+)`", types)
    }

    assert documented == {*SCALARS, "sequence<T>"}


def test_every_word_of_the_grammar_is_on_the_page() -> None:
    patterns = (str(each.pattern.value) for each in grammar().terminals)
    words = {word for each in patterns for word in re.findall(r"[a-z]{2,}", each)}
    plain = words - {"exists", "like", "and", "or", "xor"}

    shown = set(re.findall(r"[A-Za-z]+", LANGUAGE))

    assert plain - {each.lower() for each in shown} == set()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_on_the_page_with_every_option(name: str) -> None:
    section = COMMAND_LINE.split(f"\n## `ensue {name}`\n", 1)[1].split("\n## ", 1)[0]
    options = [option for each in COMMANDS[name].params for option in each.opts]

    missing = [each for each in options if each.startswith("-") and f"`{each}" not in section]

    assert [each for each in missing if each not in {"--help", "-h"}] == []


def test_every_engine_is_named_where_an_engine_can_be_chosen() -> None:
    names = [*ENGINES, SPARK]

    assert [name for name in names if f"`{name}`" not in COMMAND_LINE] == []
    assert [name for name in names if f"| `{name}` |" not in CHOICE_OF_ENGINES] == []


def test_every_subject_of_a_benchmark_is_on_the_page() -> None:
    section = COMMAND_LINE.split("\n## `ensue bench`\n", 1)[1].split("\n## ", 1)[0]

    assert [name for name in SUBJECTS if f"`{name}`" not in section] == []


def test_the_tree_of_errors_is_that_of_the_code() -> None:
    tree = [line.strip() for line in str(ensue.errors.__doc__).splitlines() if "Error" in line]

    assert [line for line in tree if line not in PYTHON] == []


@pytest.mark.parametrize("held", [Library, Run], ids=lambda each: str(each.__name__))
def test_every_method_is_on_the_page(held: type) -> None:
    names = [name for name in vars(held) if not name.startswith("_")]

    assert [name for name in names if f"`{name}" not in PYTHON and f".{name}" not in PYTHON] == []


def test_every_key_and_field_of_a_case_is_on_the_page() -> None:
    section = COMMAND_LINE.split("\n## Golden cases\n", 1)[1].split("\n## ", 1)[0]

    assert [name for name in (*KEYS, *OUTPUT_FIELDS) if f"`{name}`" not in section] == []


def test_every_public_name_is_on_the_page() -> None:
    names = {*ensue.__all__} - {"__version__"}

    assert [name for name in sorted(names) if name not in PYTHON] == []


def test_every_function_of_the_builder_is_on_the_page() -> None:
    functions = [name for name in builder.__all__ if name[0].islower()]
    # Attribute types are called as in the language; the table shows those that cannot be.
    plain_types = {name for name in functions if name.replace("_", " ") in SCALARS}

    missing = [name for name in functions if f"b.{name}" not in PYTHON]

    assert [name for name in missing if name not in plain_types] == []


def test_the_versions_that_operations_names_are_those_that_are_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    required = dict(found for each in needed for found in re.findall(r"^([\w-]+)(.*)$", each))
    section = OPERATIONS.split("## What it runs on\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([\w-]+) \| (.*?) \|", section, re.MULTILINE)
    told = {name.lower(): versions.strip("`") for name, versions in rows}
    classified = re.findall(r":: Python :: ([\d.]+)", "\n".join(project["classifiers"]))

    assert {name: told[name] for name in required} == required
    assert told["python"].split(", ") == classified
