"""Hypothesis strategies for syntax trees: whatever text can hold, and libraries that are valid.

`trees()` draws from the whole grammar and cares only that the text could be written: names are
not known, types do not fit, words of the language serve as names wherever they may. `libraries()`
draws trees in which every name is declared and every type fits, small enough to be run: they are
for tests that compare engines. Both draw every node class.
"""

from __future__ import annotations

import string
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, get_args

from hypothesis import strategies as st

from ensue.events.types import SCALARS, ValueType
from ensue.lang import expressions as x
from ensue.lang import syntax as s
from ensue.lang.building.built import (
    RESERVED_AFTER_PUSH,
    RESERVED_AS_EVENT_PORT,
    RESERVED_AS_LENGTH,
    RESERVED_AS_OUTPUT,
    RESERVED_AS_PORT_TYPE,
    RESERVED_IN_CASE,
    RESERVED_IN_ECL,
)

_WORDS = (
    *("a", "b", "Notify", "_x1", "first", "timestamp", "within", "by", "case", "in", "every"),
    *("eventtype", "correlation", "ecl", "push", "new", "true", "select", "do", "s", "min"),
)
_EXPRESSION_WORDS = frozenset(["and", "exists", "false", "in", "like", "not", "or", "true", "xor"])
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


# --- any tree --------------------------------------------------------------------------------


def names(*reserved: str) -> st.SearchStrategy[str]:
    """A name that may stand where `reserved` words may not; often a word of the language."""
    free = st.text(string.ascii_letters, min_size=1, max_size=3)
    return st.one_of(st.sampled_from(_WORDS), free).filter(lambda word: word not in reserved)


def texts() -> st.SearchStrategy[str]:
    return st.text(
        st.characters(codec="utf-8", exclude_characters="\n\0"), max_size=6
    ) | st.sampled_from(["", "'", '"', "\\", "\\'", "%_\\%", "//", "/*", "}"])


def exact_durations() -> st.SearchStrategy[s.Duration]:
    exact = st.sampled_from([1, 1_000, 1_500, 1_000_000, 60_000_000, 86_400_000_000])
    return st.builds(s.Duration, exact | st.integers(1, 10**12))


def durations() -> st.SearchStrategy[s.Duration]:
    named = st.builds(s.Duration, st.just(1_000_000), names(*RESERVED_AS_LENGTH))
    return exact_durations() | named


def parameter_values() -> st.SearchStrategy[s.ParameterValue]:
    numbers = st.integers(-(2**31), 2**31) | st.floats(-1e9, 1e9).map(lambda v: v + 0.0)
    constants = st.builds(x.Literal, st.booleans() | texts() | numbers)
    return exact_durations() | constants


def _long(value: s.ParameterValue) -> bool:
    return isinstance(value, s.Duration)


def value_types() -> st.SearchStrategy[ValueType]:
    scalars = st.sampled_from(sorted(SCALARS)).map(ValueType)
    return st.recursive(
        scalars, lambda inner: inner.map(lambda each: ValueType("sequence", each)), max_leaves=2
    )


def expression_names() -> st.SearchStrategy[x.Name]:
    first = names().filter(lambda word: word.lower() not in _EXPRESSION_WORDS)
    rest = st.lists(names(), max_size=2)
    return st.builds(lambda head, tail: x.Name((head, *tail)), first, rest)


def literals() -> st.SearchStrategy[x.Literal]:
    moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
    reals = st.floats(0, allow_nan=False, allow_infinity=False).map(abs)
    values: st.SearchStrategy[Any] = st.one_of(
        st.booleans(), st.integers(0, 2**63 - 1), reals, texts(), moments
    )
    return values.map(x.Literal)


def expressions() -> st.SearchStrategy[x.Expression]:
    leaves = st.one_of(literals(), expression_names(), st.builds(x.Exists, expression_names()))
    return st.recursive(leaves, _larger_expressions, max_leaves=6)


def _larger_expressions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    functions = names().map(str.upper).filter(lambda word: word.lower() not in _EXPRESSION_WORDS)
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    logic = st.lists(
        st.tuples(st.sampled_from(["AND", "OR", "XOR"]), inner), min_size=1, max_size=3
    )
    return st.one_of(
        st.builds(x.Not, inner),
        st.builds(x.Negate, inner),
        st.builds(x.Arithmetic, inner, _links(("+", "-"), inner)),
        st.builds(x.Arithmetic, inner, _links(("*", "/", "%"), inner)),
        st.builds(x.Comparison, inner, _links(COMPARISONS, inner)),
        st.builds(
            lambda first, rest: x.Logic(
                (first, *(each for _, each in rest)), tuple(sign for sign, _ in rest)
            ),
            inner,
            logic,
        ),
        st.builds(x.Like, inner, texts(), st.booleans()),
        st.builds(lambda a, b: x.Call("MATCHES", (a, x.Literal(b))), inner, texts()),
        st.builds(lambda *three: x.Call("BETWEEN", three), inner, inner, inner),
        st.builds(lambda one: x.Call("IS_NULL", (one,)), inner),
        st.builds(lambda one: x.Call("DISTINCT", (one,)), expression_names()),
        st.builds(x.In, inner, several, st.booleans()),
        st.builds(x.Call, functions, st.lists(inner, max_size=2).map(tuple)),
    )


def _links(
    signs: tuple[str, ...], inner: st.SearchStrategy[Any]
) -> st.SearchStrategy[tuple[tuple[str, Any], ...]]:
    return st.lists(st.tuples(st.sampled_from(signs), inner), min_size=1, max_size=3).map(tuple)


def _named(inner: st.SearchStrategy[Any], name: str = "name") -> st.SearchStrategy[tuple[Any, ...]]:
    """What the builder takes by name has each name once."""
    return st.lists(inner, max_size=2, unique_by=attrgetter(name)).map(tuple)


def _several(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(inner, min_size=2, max_size=3).map(tuple)


def filters(
    ports: st.SearchStrategy[str] | None = None, labels: st.SearchStrategy[str] | None = None
) -> st.SearchStrategy[s.Filter]:
    label_names = names() if labels is None else labels
    return st.recursive(
        st.builds(s.PortRef, names() if ports is None else ports),
        lambda inner: st.one_of(
            st.builds(s.Both, _several(inner)),
            st.builds(s.Either, _several(inner)),
            st.builds(s.Then, _several(inner)),
            *([st.builds(_with_timeout, _several(inner), durations())] if ports is None else []),
            st.builds(s.Times, inner, st.integers(1, 12)),
            st.builds(s.Labelled, label_names, inner),
        ),
        max_leaves=6,
    )


def _with_timeout(parts: tuple[s.Filter, ...], after: s.Duration) -> s.Filter:
    first, *others = parts
    return s.Then((first, s.Timeout(after), *others))


def label_expressions(
    labels: st.SearchStrategy[str] | None = None,
) -> st.SearchStrategy[s.LabelExpression]:
    label_names = names(*RESERVED_IN_CASE) if labels is None else labels
    return st.recursive(
        st.builds(s.LabelName, label_names) | st.just(s.LabelTrue()),
        lambda inner: st.one_of(
            st.builds(s.LabelNot, inner),
            st.builds(s.LabelAnd, _several(inner)),
            st.builds(s.LabelOr, _several(inner)),
        ),
        max_leaves=4,
    )


def statements() -> st.SearchStrategy[s.Statement]:
    assignments = st.lists(st.builds(s.Assignment, names(), expressions()), max_size=2).map(tuple)
    extensions = _named(st.builds(s.Extension, names(), expressions()))
    changed = st.lists(st.builds(s.LabelName, names()), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(s.PushPort, names(*RESERVED_AFTER_PUSH), extensions=extensions),
        st.builds(s.PushNew, names(), assignments, extensions=extensions),
        st.builds(s.Change, st.sampled_from(["abort", "revive", "toggle"]), changed),
    )


def ecl_expressions(
    ports: st.SearchStrategy[str] | None = None,
    types: st.SearchStrategy[str] | None = None,
    predicates: st.SearchStrategy[x.Expression] | None = None,
    lengths: st.SearchStrategy[s.Duration] | None = None,
) -> st.SearchStrategy[s.Ecl]:
    leaves = st.one_of(
        st.builds(s.PortRef, names(*RESERVED_IN_ECL) if ports is None else ports),
        st.builds(s.Holds, expressions() if predicates is None else predicates),
        st.builds(s.Constant, st.booleans()),
        st.builds(s.Timeout, durations() if lengths is None else lengths),
    )
    pushed = st.none() | (names() if types is None else types)
    kinds = st.sampled_from(["accumulate", "select", "select*", "sequential", "parallel"])
    rounds = st.sampled_from(["repeat", "persist", "loop"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(s.Group, kinds, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(s.Unless, inner, inner),
            st.builds(s.Fail, inner),
            st.builds(s.Round, rounds, inner, st.none() | st.integers(1, 5)),
            st.builds(s.Push, pushed, inner),
            st.builds(
                s.Modes,
                st.lists(st.builds(s.Mode, inner, inner), min_size=1, max_size=3).map(tuple),
            ),
        ),
        max_leaves=6,
    )


def roles() -> st.SearchStrategy[s.Role | None]:
    return st.sampled_from([None, None, *get_args(s.Role)])


def sources() -> st.SearchStrategy[s.PortSource]:
    return st.one_of(
        st.builds(s.TextSource, texts()),
        st.builds(s.RuleSource, names(s.OUTSIDE)),
        st.just(s.OutsideSource()),
    )


def ports() -> st.SearchStrategy[s.Port]:
    return st.one_of(
        st.builds(
            s.EventPort,
            names(*RESERVED_AS_PORT_TYPE),
            names(*RESERVED_AS_EVENT_PORT),
            st.lists(sources(), max_size=3).map(tuple),
            st.none() | expressions(),
        ),
        st.builds(s.TimerPort, st.sampled_from(["every", "deadline"]), durations(), names()),
    )


def clauses(*, in_ecl: bool = False) -> st.SearchStrategy[s.Clauses]:
    pairs = st.lists(st.tuples(names(), names()), min_size=1, max_size=3).map(tuple)
    # A key of one path is a port's only if its first part is a port, which is not known here.
    nested = st.builds(lambda inner: s.CommonKey(f"no_port.{inner}"), names())
    several = pairs.filter(lambda each: len(each) > 1)
    keys = st.builds(s.CommonKey, names()) | nested | st.builds(s.PortKeys, several)
    plain = st.builds(
        s.Clauses,
        st.none() | durations(),
        st.lists(keys, max_size=2).map(tuple),
        st.sampled_from([None, "first", "last", "latest"]),
    )
    return (
        plain
        if in_ecl
        else st.builds(
            replace,
            plain,
            keep=st.sampled_from([None, "none", "last", "all"]),
            unless=st.lists(st.builds(s.PortRef, names()), max_size=2).map(tuple),
            having=st.none() | expressions(),
        )
    )


@st.composite
def event_types(draw: st.DrawFn) -> s.EventTypeDeclaration:
    attributes = []
    for kind in draw(st.lists(value_types(), max_size=3)):
        reserved = ("long",) if kind.name in {"long", "unsigned long"} else ()
        inner = draw(st.lists(names(), max_size=1))
        name = ".".join([draw(names(*reserved)), *inner])
        attributes.append(s.AttributeDeclaration(name, kind, draw(st.none() | expressions())))
    parent, wire = draw(st.none() | names()), draw(st.none() | texts())
    return s.EventTypeDeclaration(draw(names()), parent, tuple(attributes), wire)


def definitions() -> st.SearchStrategy[s.Definition]:
    few_ports = st.lists(ports(), min_size=1, max_size=3).map(tuple)
    few_statements = st.lists(statements(), max_size=2).map(tuple)
    cases = st.builds(s.Case, label_expressions(), few_statements)
    outputs = names(*RESERVED_AS_OUTPUT)
    wirings = st.builds(
        s.PortWiring, names(), st.lists(sources(), min_size=1, max_size=3).map(tuple)
    )
    settings = st.builds(s.ParameterSetting, names(), parameter_values())
    return st.one_of(
        event_types(),
        st.builds(s.Import, texts()),
        st.builds(
            s.Parameter, value_types(), names(), parameter_values().filter(lambda v: not _long(v))
        ),
        st.builds(s.Parameter, st.none(), names(), exact_durations()),
        st.builds(
            s.Use,
            names(),
            names(),
            _named(wirings, "port"),
            _named(settings),
            st.sampled_from([None, "internal"]),
        ),
        st.builds(
            s.FilterCorrelation,
            outputs,
            names(),
            few_ports,
            st.lists(filters(), min_size=1, max_size=3).map(tuple),
            clauses(),
            few_statements,
            st.lists(cases, max_size=3).map(tuple),
            roles(),
        ),
        st.builds(
            s.EclCorrelation,
            outputs,
            names(),
            few_ports,
            ecl_expressions(),
            clauses(in_ecl=True),
            roles(),
        ),
    )


def trees() -> st.SearchStrategy[s.LibraryTree]:
    """Any library that can be written, whatever a checker would say to it."""
    return st.lists(definitions(), max_size=4).map(lambda each: s.LibraryTree(tuple(each)))


# --- valid libraries -------------------------------------------------------------------------

# `Base` has what every port can be asked for; the others stand below it.
BASE = s.EventTypeDeclaration(
    "Base",
    None,
    (
        s.AttributeDeclaration("k", ValueType("short")),
        s.AttributeDeclaration("v", ValueType("long")),
    ),
)
OUTPUT = s.EventTypeDeclaration(
    "Out",
    None,
    (
        s.AttributeDeclaration("v", ValueType("long")),
        s.AttributeDeclaration("s", ValueType("string")),
    ),
)
BARE = s.EventTypeDeclaration("Bare")
_MORE_ATTRIBUTES = ("boolean", "double", "float", "string", "timestamp", "long long")
_SHORT = st.sampled_from([500_000, 1_000_000, 2_000_000, 5_000_000]).map(s.Duration)


@st.composite
def declared_types(draw: st.DrawFn) -> tuple[s.EventTypeDeclaration, ...]:
    """`Base` and up to four types below it, in a tree of any shape."""
    declared = [BASE]
    for number in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from(declared)).name
        own = tuple(
            s.AttributeDeclaration(f"x{number}{index}", ValueType(kind))
            for index, kind in enumerate(
                draw(st.lists(st.sampled_from(_MORE_ATTRIBUTES), max_size=2))
            )
        )
        declared.append(s.EventTypeDeclaration(f"T{number}", parent, own))
    return tuple(declared)


def base_predicates() -> st.SearchStrategy[x.Expression]:
    """Conditions that every event below `Base` can be asked."""
    numbers = st.integers(0, 9).map(x.Literal)
    operands = st.one_of(
        st.sampled_from(["k", "v"]).map(lambda name: x.Name((name,))),
        numbers,
        st.builds(
            lambda name, number: x.Arithmetic(x.Name((name,)), (("+", number),)),
            st.sampled_from(["k", "v"]),
            numbers,
        ),
    )
    simple = st.one_of(
        st.builds(
            lambda left, sign, right: x.Comparison(left, ((sign, right),)),
            operands,
            st.sampled_from(COMPARISONS),
            operands,
        ),
        st.builds(x.In, operands, st.lists(numbers, min_size=1, max_size=3).map(tuple)),
        st.builds(x.Like, st.just(x.Name(("source",))), st.sampled_from(["s%", "_1", "%"])),
        st.just(x.Exists(x.Name(("subject",)))),
    )
    joined = st.builds(
        lambda left, sign, right: x.Logic((left, right), (sign,)),
        simple,
        st.sampled_from(["AND", "OR", "XOR"]),
        simple,
    )
    return st.one_of(simple, joined, st.builds(x.Not, joined))


@st.composite
def valid_ports(draw: st.DrawFn, types: tuple[s.EventTypeDeclaration, ...]) -> tuple[s.Port, ...]:
    """One to four event ports, and sometimes a timer."""
    type_names = [each.name for each in types]
    made: list[s.Port] = [
        s.EventPort(
            draw(st.sampled_from(type_names)),
            f"p{number}",
            tuple(map(s.TextSource, draw(st.lists(st.sampled_from(["s1", "s2"]), max_size=1)))),
            draw(st.none() | base_predicates()),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    kind: Any = draw(st.sampled_from([None, None, "every", "deadline"]))
    if kind is not None:
        made.append(s.TimerPort(kind, draw(_SHORT), "t"))
    return tuple(made)


@st.composite
def valid_clauses(draw: st.DrawFn, ports: tuple[s.Port, ...], *, in_ecl: bool = False) -> s.Clauses:
    event_ports = [each for each in ports if isinstance(each, s.EventPort)]
    per_port = s.PortKeys(tuple((each.name, draw(st.sampled_from("kv"))) for each in event_ports))
    by: Any = draw(st.sampled_from([(), (), (s.CommonKey("k"),), (per_port,), (s.CommonKey("v"),)]))
    if in_ecl:
        return s.Clauses(by=by)
    within = draw(st.none() | _SHORT)
    return s.Clauses(within, by, draw(st.sampled_from([None, "first", "last"])))


@st.composite
def valid_filters(draw: st.DrawFn, ports: tuple[s.Port, ...], first_label: int) -> s.Filter:
    """A branch over the ports. Labels are numbered, so that no two are the same."""
    shape = draw(filters(st.sampled_from([each.name for each in ports]), st.just("l")))
    count = first_label

    def numbered(node: s.Filter, in_repetition: bool) -> s.Filter:
        nonlocal count
        match node:
            case s.Labelled(body=body) if in_repetition:
                return numbered(body, in_repetition)
            case s.Labelled(body=body):
                count += 1
                label = f"l{count}"
                return s.Labelled(label, numbered(body, in_repetition))
            case s.Times(body, times):
                return s.Times(numbered(body, True), min(times, 3))
            case s.Both(parts) | s.Either(parts) | s.Then(parts):
                return type(node)(tuple(numbered(each, in_repetition) for each in parts))
            case _:
                return node

    return numbered(shape, False)


def labels_of(node: s.Filter) -> list[str]:
    """The labels of a filter, from left to right."""
    match node:
        case s.Labelled(label, body):
            return [label, *labels_of(body)]
        case s.Times(body):
            return labels_of(body)
        case s.Both(parts) | s.Either(parts) | s.Then(parts):
            return [label for each in parts for label in labels_of(each)]
        case _:
            return []


@st.composite
def valid_statements(
    draw: st.DrawFn, output: str, ports: tuple[s.Port, ...], labels: list[str]
) -> s.Statement:
    event_ports = [each.name for each in ports if isinstance(each, s.EventPort)]
    choices = ["new", "new"] + (["port"] if output == "Base" else []) + (["change"] * bool(labels))
    choice = draw(st.sampled_from(choices))
    value = x.Name((draw(st.sampled_from(event_ports)), "v"))
    both = (s.Extension("priority", x.Literal(3)), s.Extension("level", value))
    extensions = both if draw(st.booleans()) else ()
    if choice == "port":
        return s.PushPort(draw(st.sampled_from(event_ports)), extensions=extensions)
    if choice == "change":
        changed = draw(st.lists(st.sampled_from(labels), min_size=1, max_size=2, unique=True))
        kind: Any = draw(st.sampled_from(["abort", "revive", "toggle"]))
        return s.Change(kind, tuple(map(s.LabelName, changed)))
    number: Any = draw(st.sampled_from([value, x.Literal(1)]))
    given = [s.Assignment("v", number)]
    if output == "Out":
        given.append(s.Assignment("s", x.Call("STRING", (value,))))
    chosen = tuple(draw(st.sampled_from([given, given[:1]])))
    return s.PushNew(output, chosen, extensions=extensions)


@st.composite
def valid_correlations(
    draw: st.DrawFn, name: str, output: str, types: tuple[s.EventTypeDeclaration, ...]
) -> s.FilterCorrelation:
    """A filter and a transformer whose labels, ports and attributes all exist."""
    own_ports = draw(valid_ports(types))
    branches: list[s.Filter] = []
    labels: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        branches.append(draw(valid_filters(own_ports, len(labels))))
        labels.extend(labels_of(branches[-1]))
    made = valid_statements(output, own_ports, labels)
    conditions = label_expressions(st.sampled_from(labels)) if labels else st.just(s.LabelTrue())
    cases = st.builds(s.Case, conditions, st.lists(made, min_size=1, max_size=2).map(tuple))
    return s.FilterCorrelation(
        output,
        name,
        own_ports,
        tuple(branches),
        draw(valid_clauses(own_ports)),
        tuple(draw(st.lists(made, max_size=1))),
        tuple(draw(st.lists(cases, min_size=1, max_size=3))),
    )


@st.composite
def valid_ecl(
    draw: st.DrawFn, name: str, output: str, types: tuple[s.EventTypeDeclaration, ...]
) -> s.EclCorrelation:
    own_ports = draw(valid_ports(types))
    body = draw(
        ecl_expressions(
            st.sampled_from([each.name for each in own_ports]),
            st.just(output),
            base_predicates(),
            _SHORT,
        )
    )
    return s.EclCorrelation(
        output, name, own_ports, s.Push(None, body), draw(valid_clauses(own_ports, in_ecl=True))
    )


@st.composite
def libraries(draw: st.DrawFn) -> s.LibraryTree:
    """A library in which every name is declared and every type fits.

    The first correlation may put out `Base`, which the others read; they put out `Out`, which
    nobody reads, so that no circle comes about.
    """
    types = draw(declared_types())
    made: list[s.Correlation] = []
    for number in range(draw(st.integers(1, 3))):
        output = draw(st.sampled_from(["Base", "Out"])) if number == 0 else "Out"
        kind: Any = draw(st.sampled_from([valid_correlations, valid_ecl]))
        # ECL carries no data, so it puts out a type without attributes.
        output = "Bare" if kind is valid_ecl else output
        made.append(draw(kind(f"C{number}", output, types)))
    return s.LibraryTree((*types, OUTPUT, BARE, *made))
