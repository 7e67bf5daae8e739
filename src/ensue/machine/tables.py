"""Tables: a whole library as bytes that any process can load and run.

In comes a checked library; out go bytes that hold its types, its ports, keys and clauses, and the
machine of every correlation: data, never code. `load` returns a library with its machines
(`prepared`), which an engine runs without planning again. Bytes that are damaged, foreign or of
another version than `VERSION` are refused with a `TableError`. docs/machine.md describes the
layout; the records of the body are in `records`.

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
from ensue.lang.durations import print_duration
from ensue.lang.expressions import Expression
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.expressions.text.printing import print_expression, quote
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import (
    print_case,
    print_ecl,
    print_filter,
    print_key,
    print_port,
    print_statement,
)
from ensue.lang.source import Source
from ensue.lang.syntax import (
    AttributeDeclaration,
    CommonKey,
    Correlation,
    Duration,
    EclCorrelation,
    EventPort,
    EventTypeDeclaration,
    FilterCorrelation,
    Holds,
    Key,
    Port,
    PortKeys,
    TimerPort,
)
from ensue.machine.fitting import check_fit, check_form
from ensue.machine.plan import Plan
from ensue.machine.prepared import PreparedLibrary, plan_in, with_plans
from ensue.machine.records import (
    BodyRecord,
    CorrelationRecord,
    EventPortRecord,
    PortRecord,
    TimerPortRecord,
    TypeRecord,
    machine_of_record,
    record_of_machine,
)
from ensue.version import __version__

MAGIC = b"ENSUETAB"
VERSION = 3
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
            [
                _type_record(each)
                if isinstance(each, EventTypeDeclaration)
                else _correlation_record(plan_in(library, each))
                for each in library.tree.definitions
            ],
        )
    )
    return MAGIC + VERSION.to_bytes(2, "big") + hashlib.sha256(body).digest() + body


def load(data: bytes) -> Tables:
    """The library in bytes that `save` has written. Raises `TableError` for other bytes."""
    body = _body(data)
    records = [each for each in body.definitions if isinstance(each, CorrelationRecord)]
    try:
        library = _library(body)
        plans = tuple(
            _plan(record, correlation)
            for record, correlation in zip(records, library.correlations, strict=True)
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


# --- types and correlations to records --------------------------------------------------------


def _type_record(declared: EventTypeDeclaration) -> TypeRecord:
    attributes = [(_declared(each), str(each.type)) for each in declared.attributes]
    return TypeRecord(declared.name, declared.parent, attributes, declared.wire)


def _declared(attribute: AttributeDeclaration) -> str:
    """The name of an attribute, and the value of one that is worked out."""
    if attribute.value is None:
        return attribute.name
    return f"{attribute.name} = {print_expression(attribute.value)}"


def _correlation_record(planned: Plan) -> CorrelationRecord:
    correlation = planned.correlation
    clauses = correlation.clauses
    transformer: list[str] | None = None
    if isinstance(correlation, FilterCorrelation):
        expression = " || ".join(map(print_filter, correlation.branches))
        transformer = [f"{print_statement(each)};" for each in correlation.initially]
        transformer += [print_case(each) for each in correlation.cases]
    else:
        expression = print_ecl(correlation.body)
    return CorrelationRecord(
        correlation.name,
        correlation.output,
        [_port_record(port) for port in correlation.ports],
        clauses.within.microseconds if clauses.within else None,
        [_key_record(key) for key in clauses.by],
        clauses.bind,
        expression,
        transformer,
        planned.form,
        planned.why,
        None if planned.machine is None else record_of_machine(planned.machine, print_expression),
        clauses.keep,
        [each.name for each in clauses.unless],
        None if clauses.having is None else print_expression(clauses.having),
    )


def _port_record(port: Port) -> PortRecord:
    if isinstance(port, TimerPort):
        return TimerPortRecord(port.name, port.kind, port.period.microseconds)
    where = None if port.where is None else print_expression(port.where)
    return EventPortRecord(port.name, port.type, port.source, where)


def _key_record(key: Key) -> str | list[tuple[str, str]]:
    return key.name if isinstance(key, CommonKey) else list(key.parts)


# --- and back ---------------------------------------------------------------------------------


def _library(body: BodyRecord) -> CheckedLibrary:
    """The library of the texts in the tables, parsed and checked like any other."""
    texts = [
        _type_text(each) if isinstance(each, TypeRecord) else _correlation_text(each)
        for each in body.definitions
    ]
    diagnostics = Diagnostics(Source.of("\n".join(texts), "<tables>"))
    checked = check(parse_tree(diagnostics.source, diagnostics), diagnostics)
    if checked is None or diagnostics.has_errors:
        raise ValueError("\n".join(str(each) for each in diagnostics.in_order()))
    return checked


def _type_text(record: TypeRecord) -> str:
    wire = f" = {quote(record.wire)}" if record.wire is not None else ""
    parent = f"{wire} : {record.parent}" if record.parent is not None else wire
    attributes = "".join(f" attribute {type_} {name};" for name, type_ in record.attributes)
    return f"eventtype {record.name}{parent} {{{attributes} }};"


def _correlation_text(record: CorrelationRecord) -> str:
    ports = ", ".join(map(_port_text, record.ports))
    clauses = [] if record.within is None else [f"within {_duration(record.within)}"]
    if record.by:
        clauses.append(f"by {', '.join(map(_key_text, record.by))}")
    if record.bind is not None:
        clauses.append(f"bind {record.bind}")
    if record.keep is not None:
        clauses.append(f"keep {record.keep}")
    if record.unless:
        clauses.append(f"unless {', '.join(record.unless)}")
    if record.having is not None:
        clauses.append(f"having {print_expression(parse_expression(record.having))}")
    if record.transformer is None:
        heading = f"{record.output} ecl {record.name} ({ports})"
        return " ".join([heading, *clauses, "{", record.expression, "}"])
    heading = f"{record.output} correlation {record.name} ({ports})"
    return "\n".join([heading, record.expression, *clauses, "{", *record.transformer, "}"])


def _port_text(record: PortRecord) -> str:
    if isinstance(record, TimerPortRecord):
        return f"{record.kind} {_duration(record.period)} {record.name}"
    where = None if record.where is None else parse_expression(record.where)
    return print_port(EventPort(record.event_type, record.name, record.source, where))


def _key_text(record: str | list[tuple[str, str]]) -> str:
    return print_key(CommonKey(record) if isinstance(record, str) else PortKeys(tuple(record)))


def _duration(microseconds: int) -> str:
    return print_duration(Duration(microseconds))


def _predicates_of(correlation: Correlation) -> Iterator[Expression]:
    """The predicates of an ECL expression."""
    if isinstance(correlation, EclCorrelation):
        parts = expressions_in(correlation.body)
        yield from (each.predicate for each in parts if isinstance(each, Holds))


def _plan(record: CorrelationRecord, correlation: Correlation) -> Plan:
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
