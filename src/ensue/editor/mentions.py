"""The names in a definition: which stand for what, and where they are defined.

In comes Lark's parse tree of one definition, whole or repaired; out comes a `DefinitionOutline`:
what it declares, and every mention of a type, a rule, a port, a label, an attribute or a function.
Names are not looked up here: a mention of an attribute says on which types it is to be looked for,
and `ensue.editor.project` finds its declarations over the files of a library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lark import Token, Tree

from ensue.lang.syntax import OUTSIDE

Role = Literal["type", "rule", "port", "label", "attribute", "function", "parameter", "extension"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A name at a place. `types` are those on which an attribute is looked for.

    `inside` tells in which part of a definition it stands, where several roles are possible there.
    """

    role: Role
    name: str
    start: int
    end: int
    defines: bool = False
    types: tuple[str, ...] = ()
    inside: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredName:
    """An attribute or a port with its type; a timer port has the text of its timer as type.

    `value` is the text of what a derived attribute is worked out from.
    """

    name: str
    type: str
    start: int
    end: int
    is_timer: bool = False
    value: str = ""


@dataclass(slots=True)
class DefinitionOutline:
    """One definition. `kind` is its word: `eventtype`, `correlation`, `use`, `parameter`, ..."""

    kind: str
    name: str
    start: int
    end: int
    above: str | None = None
    """The type above an event type; the output type of a rule."""
    wire: str | None = None
    members: list[DeclaredName] = field(default_factory=list)
    """Attributes, or ports."""
    labels: list[DeclaredName] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)

    def port(self, name: str) -> DeclaredName | None:
        return next((each for each in self.members if each.name == name), None)

    @property
    def port_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.type for each in self.members if not each.is_timer))


def outlines(tree: Tree[Token], text: str) -> Iterator[DefinitionOutline]:
    """The definitions of the parse tree of a text.

    What stands at a place that was put in has no name.
    """
    for each in tree.children:
        if isinstance(each, Tree):
            if each.data == "eventtype":
                yield _EventType(each, text).outline
            else:
                yield _OUTLINED.get(str(each.data), _Rule)(each).outline


def _span(token: Token) -> tuple[int, int]:
    return token.start_pos or 0, token.end_pos or 0


def _tokens(tree: Tree[Token]) -> list[Token]:
    return [each for each in tree.children if isinstance(each, Token)]


def _path(tokens: Sequence[Token]) -> tuple[str, int, int]:
    """The text of a dotted name, and where it stands."""
    return ".".join(tokens), _span(tokens[0])[0], _span(tokens[-1])[1]


class _Definition:
    def __init__(self, kind: str, name: Token) -> None:
        self.outline = DefinitionOutline(kind, str(name), *_span(name))

    def mention(self, role: Role, token: Token, defines: bool = False, inside: str = "") -> None:
        self.outline.mentions.append(
            Mention(role, str(token), *_span(token), defines, inside=inside)
        )

    def source(self, tree: Tree[Token]) -> None:
        """What stands after `from`: the name of a rule is mentioned."""
        for each in _tokens(tree):
            if each.type == "NAME" and each != OUTSIDE:
                self.mention("rule", each, inside="from")

    def attribute(self, tokens: Sequence[Token], types: tuple[str, ...], inside: str) -> None:
        if tokens:
            found = Mention("attribute", *_path(tokens), types=types, inside=inside)
            self.outline.mentions.append(found)

    def name(self, tokens: list[Token], types: tuple[str, ...] | None, inside: str) -> None:
        """The mention of a name in a predicate or a value."""
        self.attribute(tokens, types or (), inside)

    def predicate(
        self, trees: Sequence[Tree[Token]], types: tuple[str, ...] | None, inside: str
    ) -> None:
        """The names of a predicate or a value; without `types` they begin with a port."""
        waiting = list(reversed(trees))
        while waiting:
            tree = waiting.pop()
            parts = [each for each in tree.children if isinstance(each, Tree)]
            match str(tree.data):
                case "name":
                    self.name(_tokens(tree), types, inside)
                case "call":
                    self.mention("function", _tokens(tree)[0], inside=inside)
                case "like" | "matches":
                    for each in _tokens(tree):
                        if each.type == "NAME":
                            self.mention("parameter", each, inside=inside)
                case "passed" | "during" | "related":
                    for each in _tokens(tree):
                        if each.type == "WINDOW_NAME":
                            self.mention("parameter", each, inside=inside)
                    # What a history is asked for has types of its own, and `start` is a word.
                    parts = []
                case "compared":
                    parts = parts[:1]
                case "concept_test" | "ontology_property" | "has":
                    parts = [each for each in parts if each.data == "name"]
            waiting += reversed(parts)


class _Import(_Definition):
    def __init__(self, tree: Tree[Token]) -> None:
        path = next(iter(_tokens(tree)), Token("STRING", ""))
        super().__init__("import", path)
        self.outline.name = str(path)[1:-1]


class _Parameter(_Definition):
    def __init__(self, tree: Tree[Token]) -> None:
        kind, name, *_ = tree.children
        assert isinstance(name, Token)
        super().__init__("parameter", name)
        self.outline.above = _type_text(kind) if isinstance(kind, Tree) else "duration"
        self.mention("parameter", name, defines=True)


class _Use(_Definition):
    def __init__(self, tree: Tree[Token]) -> None:
        _, rule, name, *parts = tree.children
        assert isinstance(rule, Token)
        assert isinstance(name, Token)
        super().__init__("use", name)
        self.outline.above = str(rule)
        self.mention("rule", rule, inside="use")
        self.mention("rule", name, defines=True)
        for part in parts:
            if not isinstance(part, Tree):
                continue
            if part.data == "setting":
                self.mention("parameter", _tokens(part)[0], inside="setting")
            elif part.data == "wiring":
                self.mention("port", _tokens(part)[0], inside="wiring")
            for source in part.find_data("source"):
                self.source(source)


class _EventType(_Definition):
    def __init__(self, tree: Tree[Token], source: str) -> None:
        name, wire, parent, *groups = tree.children
        assert isinstance(name, Token)
        super().__init__("eventtype", name)
        self._source = source
        self.mention("type", name, defines=True)
        self.outline.wire = str(wire)[1:-1] if isinstance(wire, Token) else None
        if isinstance(parent, Token):
            self.outline.above = str(parent)
            self.mention("type", parent, inside="parent")
        for group in groups:
            if isinstance(group, Tree):
                self._attributes(group)

    def _attributes(self, group: Tree[Token]) -> None:
        first, *others = [each for each in group.children if isinstance(each, Tree)]
        own = (self.outline.name,)
        for child in others:
            if child.data != "path":
                self.predicate([child], own, "derived")
                continue
            text, start, end = _path(_tokens(child))
            declared = DeclaredName(text, _type_text(first), start, end, value=self._value(others))
            self.outline.members.append(declared)
            self.outline.mentions.append(
                Mention("attribute", text, start, end, True, own, "declaration")
            )

    def _value(self, parts: Sequence[Tree[Token]]) -> str:
        """The text of what the attribute of these parts is worked out from."""
        value = next((each for each in parts if each.data != "path"), None)
        if value is None:
            return ""
        return " ".join(self._source[value.meta.start_pos : value.meta.end_pos].split())


def _type_text(tree: Tree[Token]) -> str:
    if tree.data == "sequence":
        inner = next((each for each in tree.children if isinstance(each, Tree)), None)
        return f"sequence<{_type_text(inner) if inner is not None else ''}>"
    return " ".join(_tokens(tree))


class _Rule(_Definition):
    def __init__(self, tree: Tree[Token]) -> None:
        # Before the output type stands the word of a role, or nothing.
        _, output, name, *rest = tree.children
        assert isinstance(output, Token)
        assert isinstance(name, Token)
        super().__init__(str(tree.data), name)
        self.outline.above = str(output)
        self.mention("type", output, inside="output")
        self.mention("rule", name, defines=True)
        parts = [each for each in rest if isinstance(each, Tree)]
        self._pushed = [str(_tokens(each)[0]) for part in parts for each in part.find_data("push")]
        for part in parts:
            if part.data == "ports":
                self._declare_ports(part)
        for part in parts:
            self._walk(part)

    def _declare_ports(self, ports: Tree[Token]) -> None:
        for port in ports.children:
            if not isinstance(port, Tree):
                continue
            if port.data == "event_port":
                type_, name = port.children[:2]
                timer = False
            else:
                (kind, period, name), timer = port.children, True
                type_ = Token("NAME", f"{kind} {period}")
            if isinstance(name, Token) and isinstance(type_, Token):
                declared = DeclaredName(str(name), str(type_), *_span(name), timer)
                self.outline.members.append(declared)

    def _walk(self, root: Tree[Token]) -> None:
        """Chains may be long and blocks deep, so nothing here recurses over what was written."""
        waiting = [root]
        while waiting:
            tree = waiting.pop()
            waiting += reversed(self._part(tree))

    def _part(self, tree: Tree[Token]) -> list[Tree[Token]]:
        """Take the mentions of one node; out come the parts that are to be looked at yet."""
        tokens = _tokens(tree)
        inside = [each for each in tree.children if isinstance(each, Tree)]
        match str(tree.data):
            case "event_port":
                type_, name = tokens[:2]
                self.mention("type", type_, inside="port")
                self.mention("port", name, defines=True)
                self.predicate(
                    [each for each in inside if each.data != "sources"], (str(type_),), "where"
                )
                return [each for each in inside if each.data == "sources"]
            case "source":
                self.source(tree)
            case "within" | "filter_timeout" | "timeout" | "repeated" | "round":
                for each in tokens:
                    if each.type in ("NAME", "LENGTH_NAME"):
                        self.mention("parameter", each, inside=str(tree.data))
            case "timer_port":
                if tokens[1].type == "LENGTH_NAME":
                    self.mention("parameter", tokens[1], inside="timer_port")
                self.mention("port", tokens[-1], defines=True)
            case "port_ref" | "push_port" | "unless_ports":
                for each in tokens:
                    self.mention("port", each, inside=str(tree.data))
            case "label":
                self.mention("label", tokens[0], defines=True)
                self.outline.labels.append(DeclaredName(str(tokens[0]), "", *_span(tokens[0])))
            case "label_name":
                self.mention("label", tokens[0], inside="case")
            case "change":
                for each in tokens[1:]:
                    self.mention("label", each, inside="change")
            case "push_new":
                self.mention("type", tokens[0], inside="push")
                for part in inside:
                    if part.data == "assignment":
                        self._assignment(part, str(tokens[0]))
                return [each for each in inside if each.data == "extensions"]
            case "extension":
                self.mention("extension", tokens[0])
                self.predicate(inside, None, "value")
                return []
            case "push":
                self.mention("type", tokens[0], inside="push")
            case "key":
                self._key(inside)
                return []
            case "having":
                self.predicate(inside, None, "having")
                return []
            case "holds":
                self.predicate(inside, self.outline.port_types, "holds")
                return []
        return inside

    def _key(self, paths: Sequence[Tree[Token]]) -> None:
        for path in paths:
            first, *others = _tokens(path)
            if others and self.outline.port(str(first)) is not None:
                self._of_port(first, others, "key")
                continue
            types = self.outline.port_types
            if self.outline.kind == "ecl" and self.outline.above:
                # What an `ecl` puts out is filled with the key, by the name of the attribute.
                types = tuple(dict.fromkeys((*types, self.outline.above, *self._pushed)))
            self.attribute([first, *others], types, "key")

    def _assignment(self, tree: Tree[Token], type_: str) -> None:
        path, *value = (each for each in tree.children if isinstance(each, Tree))
        self.attribute(_tokens(path), (type_,), "assignment")
        self.predicate(value, None, "value")

    def _of_port(self, port: Token, rest: Sequence[Token], inside: str) -> None:
        self.mention("port", port, inside=inside)
        declared = self.outline.port(str(port))
        types = (declared.type,) if declared is not None and not declared.is_timer else ()
        self.attribute(rest, types, inside)

    def name(self, tokens: list[Token], types: tuple[str, ...] | None, inside: str) -> None:
        first, *rest = tokens
        is_port = self.outline.port(str(first)) is not None
        if (is_port and rest) or (types is None and (is_port or rest)):
            self._of_port(first, rest, inside)
        else:
            self.attribute(tokens, types or (), inside)


_OUTLINED: Mapping[str, type[_Import | _Parameter | _Use]] = {
    "import_": _Import,
    "parameter": _Parameter,
    "use": _Use,
}
"""What outlines each kind of definition that is no rule."""
