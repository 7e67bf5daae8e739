"""Advice for definitions: their first words, names of types, and attributes."""

from __future__ import annotations

import re

from ensue.lang.diagnostics import close_match
from ensue.lang.parsing.advice.mistake import LONGEST_HEAD, Mistake

_RULE_WORDS = frozenset({"correlation", "ecl", "rule", "pattern", "query"})
_IMPORTS = frozenset({"import", "include", "use", "using", "require"})
_TYPE_WORDS = frozenset(
    ["class", "struct", "record", "message", "schema", "table", "type", "interface", "entity"]
)
_QUERY_WORDS = frozenset({"select", "insert", "from", "sequence", "sample", "match", "with"})
_CLAUSES = frozenset({"within", "by", "bind", "keep", "unless", "having"})
_CONSTANTS = frozenset({"let", "const", "var", "define", "param", "set", "val"})
_OTHER_FORMATS = frozenset({"title", "correlation", "detection", "rules", "version", "name", "id"})
_RULE = "`Out correlation Name (Type a) a { case true: push new Out { name = a.name }; }`"
_TYPE = "`eventtype Name { attribute string user; }`"


def comment(mistake: Mistake) -> str | None:
    begins = re.match(r"#|--|;;", mistake.rest)
    if begins and "_EVENTTYPE" in mistake.accepted:
        return _COMMENT
    after_a_word = re.match(r"(?:#|--)[ \t]", mistake.rest)
    return _COMMENT if after_a_word and re.search(r"\s\Z", mistake.before) else None


_COMMENT = "a comment begins with `//`, or stands between `/*` and `*/`"


def file_name(mistake: Mistake) -> str | None:
    """The path of a library in place of its text."""
    path = mistake.text.strip() if len(mistake.text) < LONGEST_HEAD else ""
    if re.fullmatch(r"[\w./\\: -]+\.(?:cor|ensue)", path):
        return f'this is the name of a file: `ensue.load("{path}")` reads it'
    return None


def other_format(mistake: Mistake) -> str | None:
    """A file of JSON or YAML in place of a library."""
    if mistake.found in {"{", "["} and "_EVENTTYPE" in mistake.accepted:
        return f"a library is no JSON: it holds event types, {_TYPE}, and rules"
    begins = mistake.accepted == {"_CORRELATION", "_ECL"}
    if begins and mistake.found == ":" and mistake.word_before.lower() in _OTHER_FORMATS:
        return f"a library is no YAML: it holds event types, {_TYPE}, and rules, {_RULE}"
    return None


def definition(mistake: Mistake) -> str | None:
    if mistake.accepted != {"_CORRELATION", "_ECL"}:
        return None
    word = mistake.word_before
    lower = word.lower()
    if lower in _CLAUSES and mistake.piece.start > 0:
        return f"the clause `{lower}` stands before the `{{` of the body"
    match = close_match(word, ["eventtype"])
    if match:
        return f"did you mean `{match}`?"
    if lower in _IMPORTS:
        return "several files are read as one library: `ensue run types.cor rules.cor ...`"
    if lower in _RULE_WORDS and re.match(r"\w+\s*\(", mistake.rest):
        kind = "ecl" if word == "ecl" else "correlation"
        return f"the type of its outputs goes first: `Type {kind} {mistake.found} (...)`"
    if lower in _TYPE_WORDS or (lower == "create" and mistake.found.lower() in _TYPE_WORDS):
        return f"an event type is declared by {_TYPE}"
    if lower in _QUERY_WORDS or lower in _RULE_WORDS or lower == "create":
        return f"a rule is written as {_RULE}"
    if lower in _CONSTANTS:
        return "a library has no constants: write the value where it is used"
    return "a definition begins with `eventtype`, or with `Type correlation Name (`"


def rule_parts(mistake: Mistake) -> str | None:
    """A rule without its ports, its filter or the brackets around them."""
    named = re.search(r"\b(?:correlation|ecl)\s+\w+\s*\Z", mistake.before)
    if named and mistake.accepted == {"LPAR"}:
        return "the ports of a rule stand in brackets behind its name: `(Type a, Type b)`"
    if mistake.accepted == {"EVERY", "DEADLINE", "NAME"} and mistake.found == ")":
        return "a rule reads events by its ports: `(Type a, Type b)`"
    if mistake.accepted == {"RPAR", "COMMA", "_FROM", "_WHERE"}:
        return "ports are parted by commas: `(Type a, Type b)`; a condition begins with `where`"
    if mistake.accepted == {"NAME"} and re.search(r"[(,]\s*\w+\s*\Z", mistake.before):
        word = mistake.word_before
        if mistake.found in {"=", "<", ">", "!", "."}:
            return "conditions at a port are joined by `AND`: commas part ports"
        if mistake.found in {",", ")"}:
            port = f"{word} {word[:1].lower()}" if word[:1].isupper() else f"Type {word}"
            return f"a port has a type and a name: `{port}`"
    if mistake.accepted == {"NAME"} and re.search(r"\b(?:every|deadline)\b", mistake.before[-30:]):
        return "a timer has a name, by which the filter asks for it: `every 5 min tick`"
    ports = " ; ".join(list(mistake.ports)[:3]) or "a"
    if mistake.found == "{" and mistake.accepted == {"LPAR", "NAME"}:
        return f"a filter stands before the body, as `{ports}`"
    clause = re.search(r"\)\s*(within|by|bind|keep|unless|having)\s*\Z", mistake.before)
    if clause and mistake.in_filter:
        return f"a filter stands before its clauses: `{ports} {clause[1]} {mistake.found}`"
    return None


_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.-][A-Za-z_]\w*)+")


def wire_name(mistake: Mistake) -> str | None:
    """A type with dots in its name, where it is declared or where a port or a rule names it."""
    accepted = mistake.accepted
    is_declared = accepted == {"EQUAL", "COLON", "LBRACE"}
    if mistake.found[:1] in {'"', "'"} and mistake.word_before == "eventtype":
        return f"a type has a name, and says which one events carry: {_wired(mistake.found[1:-1])}"
    if accepted == {"STRING"} and (unquoted := re.search(r"(\w+)\s*=\s*\Z", mistake.before)):
        wire = re.split(r"[\s{]", mistake.rest, maxsplit=1)[0]
        return f'write `eventtype {unquoted[1]} = "{wire}"`: the name on the wire is a text'
    if mistake.found not in {".", "-"} or not (
        is_declared or accepted in ({"NAME"}, {"LBRACE"}, {"_CORRELATION", "_ECL"})
    ):
        return None
    found = _DOTTED.match(mistake.text, mistake.place - len(mistake.word_before))
    if found is None:
        return None
    if is_declared:
        return (
            f"a type has a name without dots, and says which one events carry: {_wired(found[0])}"
        )
    return f"declare the type by a name without dots, {_wired(found[0], '...')}, and use that here"


def _wired(wire: str, inside: str = "") -> str:
    name = re.split(r"[^A-Za-z0-9_]", wire.strip("."))[-1] or "Name"
    body = f"{{ {inside} }}" if inside else "{}"
    return f'`eventtype {name[:1].upper()}{name[1:]} = "{wire}" {body}`'


def type_head(mistake: Mistake) -> str | None:
    """What follows the name of an event type."""
    if mistake.accepted != {"EQUAL", "COLON", "LBRACE"}:
        return None
    name = mistake.word_before
    if mistake.found == ";":
        return f"write `eventtype {name} {{}}`"
    parent = re.match(r"(?:extends|is|of|inherits|isa|<|\()\s*(?:from\s+)?(\w+)", mistake.rest)
    if parent and mistake.found != "(":
        return f"write `eventtype {name} : {parent[1]} {{`: a type has its parent behind `:`"
    return f"attributes stand in braces: `eventtype {name} {{ attribute string user; }}`"


_NAMES = (
    "a name has letters from a to z, digits and `_`, as `user_name`; data with another name is "
    "mapped where it is read: `--columns user_name=user-name`"
)
_NESTED = frozenset({"struct", "object", "record", "group", "row"})
_ANYTHING = frozenset({"map", "dict", "json", "any", "variant", "bytes", "binary", "blob"})


_WORKED_OUT = re.compile(r"\b(?:attribute|public)\s+[\w\s<>]+=[^;{}]*\Z")


def attribute(mistake: Mistake) -> str | None:
    found = mistake.found.lower()
    if "STRING_TYPE" in mistake.accepted and found in _NESTED:
        return (
            "a value inside of nested data is declared by its path: `attribute string host.name;`"
        )
    if "STRING_TYPE" in mistake.accepted and found in _ANYTHING:
        return (
            "leave it out: data that no type declares is let through; a value inside of it is "
            "declared by its path, `attribute string host.name;`"
        )
    if "STRING_TYPE" in mistake.accepted and found == "enum":
        return "write `attribute string name;`: a `where` says which values count"
    if mistake.found == "," and _WORKED_OUT.search(mistake.before):
        return "what is worked out is declared by itself: `attribute string x = ...;`"
    if mistake.accepted - {"EQUAL"} == {"COMMA", "SEMICOLON", "DOT"}:
        if mistake.found == "-" or not mistake.found[:1].isascii():
            return _NAMES
        return "an attribute ends with `;`: `attribute string user; attribute long count;`"
    is_name = re.search(r"\b(?:attribute|public)\s+[\w\s<>]+\s\Z", mistake.before)
    if is_name and "NAME" in mistake.accepted and not mistake.found[:1].isalpha():
        return _NAMES
    if "_ATTRIBUTE" in mistake.accepted and mistake.found.isidentifier():
        return f"an attribute begins with its word: `attribute {mistake.found} ...;`"
    return None
