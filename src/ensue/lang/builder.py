"""The language as Python values: `ensue.build`.

    from ensue import build as b

    login = b.eventtype("Login", user=b.string, ok=b.boolean)
    alarm = b.eventtype("Alarm", user=b.string)
    bad = b.port(login, "bad", where=b.attr("ok") == False)
    good = b.port(login, "good", where="ok = TRUE")
    rule = b.correlation(
        alarm, "BruteForce", ports=[bad, good], when=(bad * 5) >> good, within="10 min", by="user",
        cases=[b.case(True, b.push_new(alarm, user=good["user"]))],
    )
    print(b.library(login, alarm, rule))

Everything that the text can say has a value here, every value prints as its text, and the text
reads back as the same tree. The parts are in `ensue.lang.building`.
"""

from __future__ import annotations

from typing import overload

from ensue.events.types import ValueType
from ensue.lang.building.built import Built
from ensue.lang.building.definitions import (
    Correlation,
    EventType,
    Import,
    Key,
    Library,
    Parameter,
    Use,
    correlation,
    derived,
    ecl,
    eventtype,
    import_,
    key,
    library,
    parameter,
    sequence,
    use,
)
from ensue.lang.building.ecl import (
    Ecl,
    Part,
    accumulate,
    fail,
    holds,
    loop,
    modes,
    notify,
    parallel,
    persist,
    push_type,
    repeat,
    select,
    select_strict,
    sequential,
    timeout,
    unless,
)
from ensue.lang.building.filters import (
    Filter,
    Port,
    SourceName,
    TypeName,
    both,
    deadline,
    either,
    every,
    outside,
    port,
    rule,
    then,
)
from ensue.lang.building.terms import (
    Point,
    compared,
    end,
    has,
    is_a,
    ontology_property,
    property_value,
    related,
    same_as,
    start,
    subsumes,
)
from ensue.lang.building.transformers import (
    Case,
    Labels,
    Statement,
    abort,
    case,
    label,
    label_and,
    label_not,
    label_or,
    push_new,
    push_port,
    revive,
    toggle,
)
from ensue.lang.building.values import (
    Value,
    attr,
    average,
    call,
    count,
    distinct,
    expression,
    first,
    largest,
    last,
    literal,
    smallest,
    total,
)

__all__ = [
    "Built",
    "Case",
    "Correlation",
    "Ecl",
    "EventType",
    "Filter",
    "Import",
    "Key",
    "Labels",
    "Library",
    "Parameter",
    "Point",
    "Port",
    "SourceName",
    "Statement",
    "Use",
    "Value",
    "abort",
    "accumulate",
    "attr",
    "average",
    "boolean",
    "both",
    "call",
    "case",
    "char",
    "compared",
    "correlation",
    "count",
    "deadline",
    "derived",
    "distinct",
    "double",
    "ecl",
    "either",
    "end",
    "eventtype",
    "every",
    "expression",
    "fail",
    "first",
    "float_",
    "has",
    "holds",
    "import_",
    "is_a",
    "key",
    "label",
    "label_and",
    "label_not",
    "label_or",
    "largest",
    "last",
    "library",
    "literal",
    "long",
    "long_long",
    "loop",
    "modes",
    "notify",
    "octet",
    "ontology_property",
    "outside",
    "parallel",
    "parameter",
    "persist",
    "port",
    "property_value",
    "push",
    "push_new",
    "related",
    "repeat",
    "revive",
    "rule",
    "same_as",
    "select",
    "select_strict",
    "sequence",
    "sequential",
    "short",
    "smallest",
    "start",
    "string",
    "subsumes",
    "then",
    "timeout",
    "timestamp",
    "toggle",
    "total",
    "unless",
    "unsigned_long",
    "unsigned_long_long",
    "unsigned_short",
    "use",
]

boolean = ValueType("boolean")
char = ValueType("char")
double = ValueType("double")
float_ = ValueType("float")
long = ValueType("long")
long_long = ValueType("long long")
octet = ValueType("octet")
short = ValueType("short")
string = ValueType("string")
timestamp = ValueType("timestamp")
unsigned_long = ValueType("unsigned long")
unsigned_long_long = ValueType("unsigned long long")
unsigned_short = ValueType("unsigned short")


@overload
def push(what: Port | str) -> Statement: ...
@overload
def push(what: TypeName, body: Part) -> Ecl: ...
def push(what: Port | TypeName, body: Part | None = None) -> Statement | Ecl:
    """`push a` in a transformer, `push(Type) { body }` in ECL."""
    if body is not None:
        return push_type(what, body)  # type: ignore[arg-type]
    return push_port(what)  # type: ignore[arg-type]
