"""The syntax tree of a library, without anything derived from it.

Every node is immutable and compares by its content, without its place in the text; `printer` makes
text of it. Chains are flat: `a ; b ; c` is one `Then` of three parts, since the combinators are
associative and a rule may have thousands of parts. The meaning of nodes is defined by
`ensue.engine.reference`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ensue.events.types import ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions import Literal as LiteralExpression
from ensue.lang.source import Span

NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time, in whole microseconds; or that of a parameter, until it has its value."""

    microseconds: int
    parameter: str | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- event types -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttributeDeclaration:
    """`attribute type name;`, or `attribute type name = value;`, which is derived.

    A name with dots is that of a value inside nested data.
    """

    name: str
    type: ValueType
    value: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EventTypeDeclaration:
    """`eventtype Name = "wire" : Parent { ... }`. Without `wire`, events carry the name itself."""

    name: str
    parent: str | None = None
    attributes: tuple[AttributeDeclaration, ...] = ()
    wire: str | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    parent_span: Span = field(default=NOWHERE, compare=False, repr=False)
    wire_span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def wire_name(self) -> str:
        """The `type` of its events."""
        return self.name if self.wire is None else self.wire


# --- ports and clauses -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextSource:
    """`from "text"`: events from outside with this CloudEvents `source`."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RuleSource:
    """`from Name`: all that a correlation of the library puts out."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OutsideSource:
    """`from outside`: all events from outside, as without `from`."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


OUTSIDE = "outside"
"""The word for events from outside, which is no name of a correlation."""

PortSource = TextSource | RuleSource | OutsideSource


@dataclass(frozen=True, slots=True)
class EventPort:
    """`Type name from source, ... where predicate`."""

    type: str
    name: str
    sources: tuple[PortSource, ...] = ()
    where: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    name_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TimerPort:
    """`every D name` (an interval timer) or `deadline D name` (a watchdog)."""

    kind: Literal["every", "deadline"]
    period: Duration
    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    name_span: Span = field(default=NOWHERE, compare=False, repr=False)


Port = EventPort | TimerPort


@dataclass(frozen=True, slots=True)
class CommonKey:
    """`by name` or `by outer.inner`: one attribute for all ports."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PortKeys:
    """`by a.x = b.y`: an attribute for each port."""

    parts: tuple[tuple[str, str], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Key = CommonKey | PortKeys


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses between the ports (or the filter) and the body."""

    within: Duration | None = None
    by: tuple[Key, ...] = ()
    bind: Literal["first", "last", "latest"] | None = None
    keep: Literal["none", "last", "all"] | None = None
    unless: tuple[PortRef, ...] = ()
    having: Expression | None = None
    within_span: Span = field(default=NOWHERE, compare=False, repr=False)
    bind_span: Span = field(default=NOWHERE, compare=False, repr=False)
    keep_span: Span = field(default=NOWHERE, compare=False, repr=False)
    unless_span: Span = field(default=NOWHERE, compare=False, repr=False)
    having_span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- filters ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PortRef:
    """A port in a filter or in ECL, where an expression waits for one of its events."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Labelled:
    """`label:x`."""

    label: str
    body: Filter
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Both:
    """`x + y + ...`: all parts, in any order."""

    parts: tuple[Filter, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Either:
    """`x | y | ...`: one of the parts."""

    parts: tuple[Filter, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Then:
    """`x ; y ; ...`: all parts, one after the other."""

    parts: tuple[Filter, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Times:
    """`x{n}`: short for `x ; x ; ... ; x`. `parameter` has the count, if one does."""

    body: Filter
    count: int
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class Timeout:
    """`timeout(D)`: an ECL expression, and in a filter a part of `Then` that is not its first."""

    after: Duration
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Filter = PortRef | Labelled | Both | Either | Then | Times | Timeout


# --- transformers ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelTrue:
    """`case true`."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LabelName:
    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LabelNot:
    body: LabelExpression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LabelAnd:
    parts: tuple[LabelExpression, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LabelOr:
    parts: tuple[LabelExpression, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


LabelExpression = LabelTrue | LabelName | LabelNot | LabelAnd | LabelOr


@dataclass(frozen=True, slots=True)
class Assignment:
    name: str
    value: Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Extension:
    """`name = value` after `with`: an attribute beside the data of what is pushed.

    Its type follows from the library, and is there in rules that run (`derived.extensions`).
    """

    name: str
    value: Expression
    type: ValueType | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PushPort:
    """`push a with { name = value, ... }`: send on the event bound to a port."""

    port: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    extensions: tuple[Extension, ...] = ()


@dataclass(frozen=True, slots=True)
class PushNew:
    """`push new Type { name = value, ... } with { name = value, ... }`."""

    type: str
    assignments: tuple[Assignment, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    type_span: Span = field(default=NOWHERE, compare=False, repr=False)
    extensions: tuple[Extension, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """`abort(l, ...)`, `revive(l, ...)` or `toggle(l, ...)`."""

    kind: Literal["abort", "revive", "toggle"]
    labels: tuple[LabelName, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Statement = PushPort | PushNew | Change


@dataclass(frozen=True, slots=True)
class Case:
    condition: LabelExpression
    statements: tuple[Statement, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- ECL -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holds:
    """`< predicate >`: an event of which the predicate holds."""

    predicate: Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """`true` (any event that is read) or `false` (none)."""

    value: bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Group:
    """`accumulate`, `select`, `select*`, `sequential` or `parallel` over its parts."""

    kind: Literal["accumulate", "select", "select*", "sequential", "parallel"]
    parts: tuple[Ecl, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unless:
    """`do { x } unless { y }`."""

    body: Ecl
    stop: Ecl
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fail:
    """`fail { x }`."""

    body: Ecl
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Round:
    """`repeat`, `persist` or `loop`, with a bound on the rounds or without.

    `parameter` is the one that has the bound, if one has.
    """

    kind: Literal["repeat", "persist", "loop"]
    body: Ecl
    bound: int | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class Push:
    """`push(Type) { x }`, or `notify { x }` where `type` is None."""

    type: str | None
    body: Ecl
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    type_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mode:
    """`in (guard) do { body }`."""

    guard: Ecl
    body: Ecl
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Modes:
    modes: tuple[Mode, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Ecl = PortRef | Holds | Constant | Timeout | Group | Unless | Fail | Round | Push | Modes


# --- definitions -----------------------------------------------------------------------------

Role = Literal["internal", "template"]
"""A word before a correlation: what an `internal` one puts out stays in the library, and a
`template` does not run by itself."""


@dataclass(frozen=True, slots=True)
class FilterCorrelation:
    """The two-phase correlation: a filter of one or more branches, then a transformer."""

    output: str
    name: str
    ports: tuple[Port, ...]
    branches: tuple[Filter, ...]
    clauses: Clauses = Clauses()
    initially: tuple[Statement, ...] = ()
    cases: tuple[Case, ...] = ()
    role: Role | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    output_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EclCorrelation:
    """A correlation written as an ECL expression."""

    output: str
    name: str
    ports: tuple[Port, ...]
    body: Ecl
    clauses: Clauses = Clauses()
    role: Role | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    output_span: Span = field(default=NOWHERE, compare=False, repr=False)


Correlation = FilterCorrelation | EclCorrelation


@dataclass(frozen=True, slots=True)
class Import:
    """`import "path";`: all definitions of another file."""

    path: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.path


ParameterValue = LiteralExpression | Duration
"""A constant of a type, or a duration."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """`parameter type name = value;`. The type of a duration is None."""

    type: ValueType | None
    name: str
    value: ParameterValue
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    value_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PortWiring:
    """`port from source, ...` in a `use`."""

    port: str
    sources: tuple[PortSource, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ParameterSetting:
    """`parameter = value` in a `use`."""

    name: str
    value: ParameterValue
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    value_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Use:
    """`use rule as name (port from source, ...) with { parameter = value, ... };`."""

    rule: str
    name: str
    wirings: tuple[PortWiring, ...] = ()
    settings: tuple[ParameterSetting, ...] = ()
    role: Literal["internal"] | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    rule_span: Span = field(default=NOWHERE, compare=False, repr=False)


Definition = EventTypeDeclaration | FilterCorrelation | EclCorrelation | Import | Parameter | Use


@dataclass(frozen=True, slots=True)
class LibraryTree:
    """A library: its definitions in their order.

    One that runs has nothing but event types and correlations (`ensue.lang.expanding`).
    """

    definitions: tuple[Definition, ...] = ()

    @property
    def types(self) -> tuple[EventTypeDeclaration, ...]:
        return tuple(d for d in self.definitions if isinstance(d, EventTypeDeclaration))

    @property
    def correlations(self) -> tuple[Correlation, ...]:
        return tuple(
            d for d in self.definitions if isinstance(d, FilterCorrelation | EclCorrelation)
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(d for d in self.definitions if isinstance(d, Parameter))
