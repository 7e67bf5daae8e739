"""Rules that relate several events, as plain data: what the oracle of values reads.

In comes what a generator draws or `text` reads; out goes the text of a library for the
engines. The oracle works on the same data and needs no parser, so a mistake of the parser shows as
a difference. A tree is binary here: `a ; b ; c` is `(a ; b) ; c`. Durations are in microseconds.
Nothing is checked; a generator that draws what the language refuses has a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

SECOND = 1_000_000
EXTENSIONS = {"priority": "long", "count": "long", "subject": "string", "good": "boolean"}
"""What is drawn to stand beside the data of what is pushed, and the kinds of these values."""
KEEPS = ("none", "last", "all")
BINDS = ("first", "last", "latest")
AGGREGATES = ("count", "distinct", "sum", "avg", "min", "max", "first", "last")


# --- values and conditions ------------------------------------------------------------------------


@dataclass(frozen=True)
class Const:
    value: int | float | str | bool

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return "TRUE" if self.value else "FALSE"
        return f"'{self.value}'" if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True)
class Read:
    """`a.Name`, or in a `where` (with no port) an attribute of the event itself."""

    port: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.port}.{self.name}"


@dataclass(frozen=True)
class Aggregate:
    kind: str
    port: str
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}({self.port}{'' if self.name is None else f'.{self.name}'})"


@dataclass(frozen=True)
class Binary:
    """Arithmetic, a comparison, `AND` or `OR`, always in brackets as text."""

    sign: str
    left: Value
    right: Value

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


@dataclass(frozen=True)
class Not:
    body: Value

    def __str__(self) -> str:
        return f"(NOT {self.body})"


@dataclass(frozen=True)
class IsNull:
    body: Value
    is_not: bool = False

    def __str__(self) -> str:
        return f"({self.body} IS {'NOT ' if self.is_not else ''}NULL)"


@dataclass(frozen=True)
class Exists:
    body: Read

    def __str__(self) -> str:
        return f"(EXISTS {self.body})"


@dataclass(frozen=True)
class Coalesce:
    parts: tuple[Value, ...]

    def __str__(self) -> str:
        return f"COALESCE({', '.join(str(each) for each in self.parts)})"


Value = Const | Read | Aggregate | Binary | Not | IsNull | Exists | Coalesce


# --- filters --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    port: str

    def __str__(self) -> str:
        return self.port


@dataclass(frozen=True)
class Pair:
    """`x + y`, `x | y` or `x ; y`; only on the right of `;` may a timeout stand."""

    sign: Literal["+", "|", ";"]
    left: Node
    right: Node | Timeout

    def __str__(self) -> str:
        alike = isinstance(self.left, Pair) and self.left.sign == self.sign
        left = str(self.left) if alike else bracketed(self.left)
        return f"{left} {self.sign} {bracketed(self.right)}"


@dataclass(frozen=True)
class Timeout:
    duration: int

    def __str__(self) -> str:
        return f"timeout({duration_text(self.duration)})"


@dataclass(frozen=True)
class Times:
    body: Node
    count: int

    def __str__(self) -> str:
        return f"{bracketed(self.body)}{{{self.count}}}"


@dataclass(frozen=True)
class Label:
    name: str
    body: Node

    def __str__(self) -> str:
        return f"{self.name}:{bracketed(self.body)}"


Node = Place | Pair | Times | Label


def bracketed(node: Node | Timeout) -> str:
    return f"({node})" if isinstance(node, Pair | Label | Times) else str(node)


def expanded(node: Node) -> Node:
    """The node with each `x{n}` written out as `x ; x ; ... ; x`."""
    if isinstance(node, Times):
        body = expanded(node.body)
        out = body
        for _ in range(node.count - 1):
            out = Pair(";", out, body)
        return out
    if isinstance(node, Label):
        return Label(node.name, expanded(node.body))
    if isinstance(node, Pair):
        right = node.right if isinstance(node.right, Timeout) else expanded(node.right)
        return Pair(node.sign, expanded(node.left), right)
    return node


def parts_of(node: Node | Timeout) -> Iterator[Node | Timeout]:
    """The node and all below it, from the left."""
    yield node
    if isinstance(node, Pair):
        yield from parts_of(node.left)
        yield from parts_of(node.right)
    elif isinstance(node, Label | Times):
        yield from parts_of(node.body)


def labels_of(node: Node) -> list[str]:
    return [each.name for each in parts_of(node) if isinstance(each, Label)]


# --- rules ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventType:
    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    parent: str | None = None

    def __str__(self) -> str:
        parent = f" : {self.parent}" if self.parent else ""
        own = "".join(f" attribute {kind} {name};" for name, kind in self.attributes)
        return f"eventtype {self.name}{parent} {{{own} }};"


@dataclass(frozen=True)
class Port:
    type: str
    name: str
    sources: tuple[str, ...] = ()
    where: Value | None = None

    def __str__(self) -> str:
        """`sources` are as they are written: names of rules, texts in quotes, `outside`."""
        sources = f" from {', '.join(self.sources)}" if self.sources else ""
        where = "" if self.where is None else f" where {self.where}"
        return f"{self.type} {self.name}{sources}{where}"


@dataclass(frozen=True)
class Timer:
    kind: Literal["every", "deadline"]
    period: int
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {duration_text(self.period)} {self.name}"


@dataclass(frozen=True)
class Case:
    """`labels` is a disjunction of conjunctions of literals (`l1` or `!l1`); empty is `true`.

    What is pushed is a port's name, or a new event: its type and its values by attribute; what
    stands beside it, by extension.
    """

    labels: tuple[tuple[str, ...], ...]
    push: str | New
    beside: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        either = " | ".join(f"({' & '.join(each)})" for each in self.labels)
        values = ", ".join(f"{name} = {value}" for name, value in self.beside)
        beside = f" with {{ {values} }}" if values else ""
        return f"case {either or 'true'}: push {self.push}{beside};"


@dataclass(frozen=True)
class New:
    type: str
    values: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.values)
        return f"new {self.type} {{ {values} }}"


@dataclass(frozen=True)
class Clauses:
    """`by` has one entry a key: a name on all ports (port `""`), or a name a port."""

    within: int | None = None
    by: tuple[tuple[tuple[str, str], ...], ...] = ()
    bind: str | None = None
    keep: str | None = None
    unless: tuple[str, ...] = ()
    having: Value | None = None

    def __str__(self) -> str:
        keys = [
            " = ".join(name if port == "" else f"{port}.{name}" for port, name in key)
            for key in self.by
        ]
        texts = {
            "within": None if self.within is None else duration_text(self.within),
            "by": ", ".join(keys),
            "bind": self.bind,
            "keep": self.keep,
            "unless": ", ".join(self.unless),
            "having": None if self.having is None else str(self.having),
        }
        return "".join(f"\n    {word} {text}" for word, text in texts.items() if text)


@dataclass(frozen=True)
class Rule:
    output: str
    name: str
    ports: tuple[Port | Timer, ...]
    branches: tuple[Node, ...]
    clauses: Clauses
    cases: tuple[Case, ...]

    def __str__(self) -> str:
        ports = ", ".join(str(each) for each in self.ports)
        branches = " || ".join(str(each) for each in self.branches)
        cases = "".join(f"\n    {each}" for each in self.cases)
        head = f"{self.output} correlation {self.name} ({ports})"
        return f"{head}\n    {branches}{self.clauses}\n{{{cases}\n}}"


@dataclass(frozen=True)
class Model:
    """A whole library."""

    types: tuple[EventType, ...]
    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        return "\n".join(str(each) for each in (*self.types, *self.rules)) + "\n"

    def attributes(self, name: str) -> dict[str, str]:
        """The attributes of a type with those it inherits, and the type of each."""
        found = next(each for each in self.types if each.name == name)
        inherited = self.attributes(found.parent) if found.parent else {}
        return {**inherited, **dict(found.attributes)}

    def is_under(self, name: str, wanted: str) -> bool:
        if name == wanted:
            return True
        found = next((each for each in self.types if each.name == name), None)
        return bool(found and found.parent and self.is_under(found.parent, wanted))


@dataclass(frozen=True)
class Moment:
    """An event of a stream. The time is in microseconds."""

    id: str
    source: str
    type: str
    time: int
    data: dict[str, Any]
    extensions: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """A library, a stream in the order of its times, and where the clock stands at its end."""

    seed: int
    model: Model
    events: tuple[Moment, ...]
    until: int | None = None

    def __str__(self) -> str:
        lines = [f"{e.time / SECOND:g} {e.type} {e.data} from {e.source}" for e in self.events]
        numbered = [f"  {e.id}: {line}" for e, line in zip(self.events, lines, strict=True)]
        end = "" if self.until is None else f", until {self.until / SECOND:g}"
        return "\n".join([f"// seed {self.seed}{end}", str(self.model), *numbered])


def duration_text(microseconds: int) -> str:
    if microseconds % SECOND == 0:
        return f"{microseconds // SECOND} s"
    return f"{microseconds // 1000} ms"
