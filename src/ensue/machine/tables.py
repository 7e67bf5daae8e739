"""Tables: a whole library as bytes that any process can load and run.

In comes a checked library; out go bytes that hold its text, and the machine of every correlation:
data, never code. What the language can say the text holds, so that no clause of a rule can be left
behind. `load` returns a library with its machines (`prepared`), which an engine runs without
planning again. Bytes that are damaged, foreign or of another version than `VERSION` are refused
with a `TableError`. docs/machine.md describes the layout; the records of the body are in `records`.

    8 bytes   ENSUETAB
    2 bytes   version, most significant byte first
    32 bytes  SHA-256 of the body
    the rest  the body, in MessagePack
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from ensue.errors import EnsueError, TableError
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checker import check
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions import Expression
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_library
from ensue.lang.source import Source
from ensue.lang.syntax import Correlation, EclCorrelation, Holds
from ensue.machine.fitting import check_fit, check_form
from ensue.machine.plan import Plan
from ensue.machine.prepared import PreparedLibrary, plan_in, with_plans
from ensue.machine.records import BodyRecord, PlanRecord, machine_of_record, record_of_machine
from ensue.version import __version__

MAGIC = b"ENSUETAB"
VERSION = 4
"""Raised with every change of the records. Tables of any other version are refused."""
_CHECKSUM = 32
_HEADER = len(MAGIC) + 2 + _CHECKSUM


@dataclass(frozen=True)
class Tables:
    """A loaded library, and the plans of its correlations in their order.

    The library carries these plans too, so that an engine that runs it makes none. `made_by` is the
    version of Ensue that wrote the tables.
    """

    library: PreparedLibrary
    plans: tuple[Plan, ...]
    made_by: str


def save(library: CheckedLibrary) -> bytes:
    """The tables of a library. Raises `LimitError` if a machine is too large."""
    body = msgspec.msgpack.encode(
        BodyRecord(
            __version__,
            print_library(library.tree),
            [_record(plan_in(library, each)) for each in library.correlations],
        )
    )
    return MAGIC + VERSION.to_bytes(2, "big") + hashlib.sha256(body).digest() + body


def load(data: bytes) -> Tables:
    """The library in bytes that `save` has written. Raises `TableError` for other bytes."""
    body = _body(data)
    try:
        library = _library(body.text)
        plans = tuple(
            _plan(record, correlation)
            for record, correlation in zip(body.plans, library.correlations, strict=True)
        )
    except (EnsueError, ValueError, LookupError) as error:
        raise TableError(f"the tables contradict themselves: {error}") from None
    by_name = {each.correlation.name: each for each in plans}
    return Tables(with_plans(library, by_name), plans, body.made_by)


def _body(data: bytes) -> BodyRecord:
    if not data.startswith(MAGIC):
        raise TableError(
            "these bytes are no tables of ensue: they do not begin with `ENSUETAB`; "
            "make tables from a library with `library.tables()`"
        )
    if len(data) < _HEADER:
        raise TableError(
            f"the tables end after {len(data)} bytes, inside their header; make them again"
        )
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "big")
    if version != VERSION:
        raise TableError(
            f"the tables have version {version}, and this version of ensue reads version {VERSION}:"
            " use the version of ensue that wrote them, or make them again with `library.tables()`"
        )
    body = data[_HEADER:]
    if hashlib.sha256(body).digest() != data[_HEADER - _CHECKSUM : _HEADER]:
        raise TableError(
            "the tables are damaged or cut off: their checksum does not fit; make them again"
        )
    try:
        return msgspec.msgpack.decode(body, type=BodyRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TableError(
            f"the tables hold something that version {VERSION} has not: {error}; make them again"
        ) from None


def _library(text: str) -> CheckedLibrary:
    """The library of the text in the tables, parsed and checked like any other."""
    diagnostics = Diagnostics(Source.of(text, "<tables>"))
    checked = check(parse_tree(diagnostics.source, diagnostics), diagnostics)
    if checked is None or diagnostics.has_errors:
        raise ValueError("\n".join(str(each) for each in diagnostics.in_order()))
    return checked


def _record(planned: Plan) -> PlanRecord:
    machine = planned.machine
    return PlanRecord(
        planned.form,
        planned.why,
        None if machine is None else record_of_machine(machine, print_expression),
    )


def _predicates_of(correlation: Correlation) -> Iterator[Expression]:
    """The predicates of an ECL expression."""
    if isinstance(correlation, EclCorrelation):
        parts = expressions_in(correlation.body)
        yield from (each.predicate for each in parts if isinstance(each, Holds))


def _plan(record: PlanRecord, correlation: Correlation) -> Plan:
    machine = None
    if record.machine is not None:
        # The predicates of the correlation know how the attributes in them are worked out.
        asked = {each: each for each in _predicates_of(correlation)}

        def own(text: str) -> Expression:
            read = parse_expression(text)
            return asked.get(read, read)

        machine = machine_of_record(record.machine, own)
        check_fit(machine, correlation)
    check_form(record.form, machine, correlation)
    return Plan(correlation, record.form, record.why, machine, None)
