"""Rewrites attributes, ports and statements of other languages."""

from __future__ import annotations

import re

from ensue.lang.parsing.rewriting.conditions import VALUES, rewrite_condition
from ensue.lang.parsing.rewriting.habits import HIDDEN, Draft, habit

TYPES = {
    **dict.fromkeys(("int", "integer", "int32", "i32", "smallint"), "long"),
    **dict.fromkeys(("bigint", "int64", "i64"), "long long"),
    **dict.fromkeys(("uint", "uint32"), "unsigned long"),
    **dict.fromkeys(("byte", "uint8", "tinyint"), "octet"),
    **dict.fromkeys(("real", "number", "numeric", "decimal", "float64"), "double"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("str", "text", "varchar", "keyword", "uuid", "ip"), "string"),
    **dict.fromkeys(("date", "datetime", "time", "instant"), "timestamp"),
}
OURS = "short|long|unsigned|float|double|boolean|char|octet|string|timestamp|sequence"
_WORD = r"[A-Za-z_]\w*"
_TYPE = rf"(?:{OURS}|{'|'.join(TYPES)})"
_NAMED_TYPE = re.compile(rf"\b({'|'.join(TYPES)}|{OURS})\b(?=\s+{_WORD}|\s*>)", re.IGNORECASE)

_CONSTANT = rf"{HIDDEN}|-?\d+(?:\.\d+)?|true|false|null|none"
_ATTRIBUTES = (
    habit(
        rf"^(?:attr|field|property|column|prop|var)\s+(?={_WORD})",
        "",
        "an attribute begins with its word",
    ),
    habit(rf"({_WORD})\s*\?(?=\s)", r"\1", "`null` fits every attribute"),
    habit(rf"\s*:?=\s*(?:{_CONSTANT})?\s*(?=;|$)", "", "an attribute has no default"),
    habit(r":=", "=", "what an attribute is worked out from follows `=`"),
    habit(
        rf"^((?:{OURS})(?:\s+\w+)*?)\s+({_WORD}(?:\s*,\s*{_WORD})*)\s*,\s*({_WORD}\s*=.*)$",
        r"\1 \2; attribute \1 \3",
        "what is worked out is declared by itself",
    ),
    habit(r"\s+(?:not\s+null|nullable|optional|required)\b", "", "`null` fits every attribute"),
    habit(
        rf"^({_WORD})\s*:\s*([^=]+?)\s*(=[^;]*)?;?$",
        lambda found: f"{found[2]} {found[1]} {found[3] or ''}".rstrip() + ";",
        "the type comes first",
    ),
    habit(r"\b(?:list|array|vector)\s*<", "sequence<", "a list of values is a `sequence`"),
    habit(
        rf"\b({_WORD}(?:\s+{_WORD})?)\s*\[\s*\]",
        r"sequence<\1>",
        "a list of values is a `sequence`",
    ),
    habit(
        rf"^(?:attribute\s+)?(?!{_TYPE}\b)(?!attribute\b|public\b)({_WORD})\s+({_TYPE})\s*;?$",
        r"\2 \1;",
        "the type comes first",
    ),
)


def rewrite_attribute(draft: Draft) -> None:
    """`user: string`, `int n`, `string[] tags`, or an attribute without its `;`."""
    is_declared = re.match(r"(attribute|public)\b", draft.text)
    if is_declared:
        draft.text = draft.text[is_declared.end() :].strip()
    draft.apply(_ATTRIBUTES)
    for found in reversed(list(_NAMED_TYPE.finditer(draft.text))):
        name = TYPES.get(found[1].lower(), found[1].lower())
        written = draft.text[: found.start()] + name + draft.text[found.end() :]
        draft.change(written, f"`{found[1]}` is called `{name}` here")
    if not draft.text.endswith(";"):
        draft.change(f"{draft.text};", "an attribute ends with `;`")
    reason = "" if is_declared else "an attribute begins with its word"
    draft.change(f"attribute {draft.text}", reason)


_PORTS = (
    habit(
        rf"^({_WORD})\s*\(([^()]+)\)\s*({_WORD})$",
        r"\1 \3 where \2",
        "a condition begins with `where`",
    ),
    habit(
        rf"^({_WORD})\s*=\s*({_WORD})(?=\s*(?:\(|\[|$))",
        r"\2 \1",
        "a port is its type, then its name",
    ),
    habit(rf"^({_WORD})\s*:\s*({_WORD})", r"\2 \1", "a port is its type, then its name"),
    habit(rf"^({_WORD})\s+as\s+({_WORD})", r"\1 \2", "a port is its type, then its name"),
    habit(
        rf"^({_WORD}\s+{_WORD})\s+(?:if|when|with|having|filter|WHERE|Where)\s+",
        r"\1 where ",
        "a condition at a port begins with `where`",
    ),
    habit(rf"^({_WORD}\s+{_WORD})\s*\((.+)\)$", r"\1 where \2", "a condition begins with `where`"),
    habit(rf"^({_WORD}\s+{_WORD})\s*\[(.+)\]$", r"\1 where \2", "a condition begins with `where`"),
)


def rewrite_port(draft: Draft) -> None:
    draft.apply(_PORTS)
    head, word, condition = draft.text.partition(" where ")
    if word:
        draft.text = condition
        rewrite_condition(draft)
        draft.text = f"{head} where {draft.text}"


_OPERAND = r"[\w.]+|\ue000\d+\ue001"
_STATEMENTS = (
    habit(
        r"\b(?:emit|output|send|return|yield|insert\s+into|raise|notify)\s+(?=\w)",
        "push ",
        "an event is put out by `push`",
    ),
    habit(r"^(case\s+[^:{]+?)\s+(?=push\b)", r"\1: ", "the labels of a case end with `:`"),
    habit(
        r"\b(abort|revive|toggle)\s+(\w+(?:\s*,\s*\w+)*)",
        r"\1(\2)",
        "what is aborted or revived stands in brackets",
    ),
    habit(r"(?<!push )\bnew\s+(?=\w+\s*\{)", "push new ", "an event is put out by `push`"),
    habit(rf"\bpush\s+(?!new\b)({_WORD})\s*(?=\{{)", r"push new \1 ", "a new event is `push new`"),
    habit(
        rf"\bpush\s+new\s+({_WORD})\s*\(([^()]*)\)", r"push new \1 { \2 }", "values stand in `{}`"
    ),
    habit(
        r"([{,])\s*([\w.]+)\s+as\s+([\w.]+)", r"\1 \3 = \2", "the name of an attribute goes first"
    ),
    habit(
        rf"=\s*({_OPERAND})\s*\|\|\s*({_OPERAND})",
        r"= CONCAT(\1, \2)",
        "texts are joined by `CONCAT`",
    ),
    habit(r"([{,;]\s*[\w.]+)\s*:(?!:)=?\s*", r"\1 = ", "a value is given by `=`"),
    habit(rf"(=\s*(?:{_OPERAND}))\s+(?=[\w.]+\s*=)", r"\1, ", "values are parted by commas"),
    habit(r";(?=\s*[\w.]+\s*=)", ",", "values are parted by commas"),
    habit(r"[;,]\s*(?=\})", " ", "nothing follows the last value"),
    habit(rf"\{{\s*({_WORD})\s*\}}", r"{ \1 }", ""),
)


def rewrite_statement(draft: Draft) -> None:
    draft.change(
        re.sub(
            r"^(?:default|else|otherwise|case\s+else|case\s+default)\s*:", "case true:", draft.text
        ),
        "a case that always runs is `case true`",
    )
    is_case = re.match(r"case\b[^:{]*:", draft.text)
    head = is_case[0] if is_case else ""
    draft.text = draft.text[len(head) :].strip()
    draft.apply(VALUES)
    draft.apply(_STATEMENTS)
    whole = re.fullmatch(rf"push\s+({_WORD})\s*;?", draft.text)
    if whole and whole[1] not in draft.ports and draft.reasons:
        draft.text = f"push new {whole[1]} {{}};"
    draft.text = f"{head} {draft.text}".strip()
