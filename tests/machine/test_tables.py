"""Tables keep a library whole, and refuse what is none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ensue
from ensue.casefile import find_case_files, read_cases, run_case
from ensue.errors import TableError, UsageError
from ensue.events.event import Event
from ensue.library import Library
from ensue.machine.plan import plan
from ensue.machine.tables import MAGIC, VERSION, load, save
from tests.oracle.generator import scenario

from .runs import SECOND, log, moments

SAMPLES = Path(__file__).parent / "samples"
SEEDS = 60

LIBRARY = ensue.load(SAMPLES / "tables.cor")
SAMPLE = (SAMPLES / f"tables-v{VERSION}.bin").read_bytes()
"""The tables of `LIBRARY`, written once. A change of the form needs another version and sample."""
SAVED = save(LIBRARY.checked)


def readings(library: Library) -> list[Event]:
    """What follows from a little stream that lets every correlation of the sample trigger."""
    events = [
        {
            "id": str(n),
            "source": "lab",
            "type": "Reading",
            "time": f"2024-05-01T00:{n // 60:02}:{n % 60:02}Z",
            "data": {"Sensor": 1, "Celsius": celsius},
        }
        for n, celsius in enumerate([19.0, 25.0, 45.0, 18.0, *[30.0] * 9, 21.0, 50.0, 10.0])
    ]
    return list(library.run(events, until="2024-05-01T00:10:00Z"))


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_a_random_library_comes_back_whole(first: int) -> None:
    """Its tree, its types, who feeds whom, and every machine and form are what they were."""
    for seed in range(first, first + 20):
        library = ensue.parse(scenario(seed).library).checked

        tables = load(save(library))

        assert tables.library.tree == library.tree
        assert tables.library.types == library.types
        assert tables.library.feeds == library.feeds
        for given, made in zip(tables.plans, map(plan, library.correlations), strict=True):
            assert (given.form, given.why, given.machine) == (made.form, made.why, made.machine)


GOLDEN = [
    case
    for file in find_case_files(Path(__file__).parents[2] / "cases")
    for case in read_cases(file)
    if not case.expected.errors
]


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_every_golden_case_passes_on_loaded_tables(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_tables(text: str, name: str, ontology: None, parameters: Any) -> Library:
        assert ontology is None, "golden cases of this folder ask none"
        return Library.from_tables(ensue.parse(text, name, parameters=parameters).tables())

    monkeypatch.setattr("ensue.casefile.comparison.parse", from_tables)
    # What the tables say of themselves has no lines: warnings are told of the text.
    cases = [replace(case, expected=replace(case.expected, warnings=None)) for case in GOLDEN]

    failed = [case.name for case in cases if not run_case(case, engine).passed]

    assert failed == []


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_loaded_tables_are_run_without_planning_again(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Library.from_tables(LIBRARY.tables())

    def refuse(*_: object) -> object:
        raise AssertionError("a machine was built")

    for module in ("plan", "prepared"):
        monkeypatch.setattr(f"ensue.machine.{module}.plan", refuse)
    for module in ("core.instances.rules", "batch.paths"):
        monkeypatch.setattr(f"ensue.engine.{module}.plan", refuse)
    columns = [e for e in loaded.correlations if engine == "step" or e.name != "Silence"]
    names = [each.name for each in loaded.correlations if each not in columns]
    run = loaded.start(engine) if not names else _without(loaded, names).start(engine)

    assert run.finish() == []


def _without(library: Library, names: list[str]) -> Library:
    tree = library.checked.tree
    kept = tuple(each for each in tree.definitions if each.name not in names)
    return Library(replace(library.checked, tree=replace(tree, definitions=kept), feeds={}))


def test_a_rule_that_was_changed_since_is_planned_anew() -> None:
    """The machine that came along is of another text."""
    loaded = Library.from_tables(
        ensue.parse("eventtype A{} A ecl X (A a) { notify { a } }").tables()
    )
    run = loaded.start("step")
    run.replace("A ecl X (A a) { repeat { notify { a } } }")

    made = [run.push(Event.of("A", time=n, id=str(n))) for n in range(3)]

    assert [len(each) for each in made] == [1, 1, 1]


def test_a_file_of_tables_is_loaded_like_one_of_text(tmp_path: Path) -> None:
    file = tmp_path / "rules.tables"
    file.write_bytes(LIBRARY.tables())

    assert readings(ensue.load(file)) == readings(LIBRARY)


def test_tables_are_loaded_alone(tmp_path: Path) -> None:
    file = tmp_path / "rules.tables"
    file.write_bytes(LIBRARY.tables())

    with pytest.raises(UsageError, match="holds the tables of a whole library, and 2 files"):
        ensue.load(SAMPLES / "tables.cor", file)


def test_machines_that_came_along_are_the_ones_that_are_saved_again() -> None:
    loaded = Library.from_tables(SAMPLE)

    assert load(loaded.tables()).plans == load(SAMPLE).plans


def test_saving_twice_gives_the_same_bytes() -> None:
    assert save(LIBRARY.checked) == save(load(SAVED).library)


def test_the_sample_of_the_present_version_runs() -> None:
    tables = load(SAMPLE)
    made = readings(Library(tables.library))

    assert [p.form for p in tables.plans] == ["table", "linear", "table"]
    assert {(each.type, each.data.get("Why")) for each in made} == {
        ("Alarm", "steep"),
        ("Alarm", "long"),
        ("Alarm", "pair"),
        ("Quiet", None),
    }
    assert made == readings(LIBRARY)


@pytest.mark.parametrize("length", [0, 5, 8, 9, 20, 41, 42, 43, len(SAVED) // 2, len(SAVED) - 1])
def test_tables_that_are_cut_off_are_refused(length: int) -> None:
    with pytest.raises(TableError):
        load(SAVED[:length])


def test_every_damaged_byte_is_noticed() -> None:
    for place in range(0, len(SAVED), 7):
        damaged = SAVED[:place] + bytes([SAVED[place] ^ 0x40]) + SAVED[place + 1 :]

        with pytest.raises(TableError):
            load(damaged)


def test_bytes_of_something_else_are_named_as_such() -> None:
    with pytest.raises(TableError, match="no tables of ensue"):
        load(b"PAR1 something else altogether")


@pytest.mark.parametrize("version", [0, VERSION - 1, VERSION + 1])
def test_another_version_is_refused_with_both_numbers_and_the_way_out(version: int) -> None:
    other = MAGIC + version.to_bytes(2, "big") + SAVED[10:]
    both = f"version {version}, and this version of ensue reads version {VERSION}:"

    with pytest.raises(TableError, match=rf"{both} .* make them again with `library.tables\(\)`"):
        load(other)


def forged(change: Callable[[list], object]) -> bytes:  # type: ignore[type-arg]
    """The sample with its body changed, and a checksum that fits again."""
    body = msgspec.msgpack.decode(SAVED[42:])
    change(body)
    packed = msgspec.msgpack.encode(body)
    return SAVED[:10] + hashlib.sha256(packed).digest() + packed


TEXT, PLANS = 1, 2
MACHINE = 2


def test_bytes_that_hold_other_records_are_refused() -> None:
    with pytest.raises(TableError, match=f"something that version {VERSION} has not"):
        load(forged(lambda body: body.pop()))


def test_text_that_is_no_utf8_is_refused() -> None:
    packed = SAVED[42:].replace(b"Celsius", b"Celsi\xffs")
    forgery = SAVED[:10] + hashlib.sha256(packed).digest() + packed

    with pytest.raises(TableError, match=f"something that version {VERSION} has not"):
        load(forgery)


def test_a_state_that_does_not_exist_is_refused() -> None:
    def change(body: list) -> None:  # type: ignore[type-arg]
        body[PLANS][0][MACHINE][1].append(10_000)

    with pytest.raises(TableError, match="there is no state 10000"):
        load(forged(change))


def test_an_expression_over_ports_that_do_not_exist_is_refused() -> None:
    def change(body: list) -> None:  # type: ignore[type-arg]
        body[TEXT] = body[TEXT].replace("a + b", "a + nobody")

    with pytest.raises(TableError, match="nobody"):
        load(forged(change))


def test_a_predicate_that_is_no_cesql_is_refused() -> None:
    def change(body: list) -> None:  # type: ignore[type-arg]
        body[TEXT] = body[TEXT].replace("Celsius <= 20.0", "Celsius <=")

    with pytest.raises(TableError, match="contradict themselves"):
        load(forged(change))


def test_the_machines_of_the_sample_are_stepped() -> None:
    """They come from the bytes alone: nothing is built anew from the text beside them."""
    for loaded in load(SAMPLE).plans:
        machine = loaded.needed_machine
        # `Silence` puts something out only after a pause that no random stream has.
        stream = [*moments(machine, 1, length=60), (60 * SECOND, frozenset[str](), None)]

        assert log(machine, stream), loaded.correlation.name
