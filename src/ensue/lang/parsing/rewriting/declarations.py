"""Attributes, ports and statements, from what other languages write to the line of ours."""

from __future__ import annotations

import re

from ensue.lang.parsing.rewriting.habits import Draft, habit, rewrite_condition

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

_ATTRIBUTES = (
    habit(rf"^({_WORD})\s*:\s*(.+?)\s*;?$", r"\2 \1;", "the type comes first"),
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
    habit(rf"^({_WORD})\s*:\s*({_WORD})", r"\2 \1", "a port is its type, then its name"),
    habit(rf"^({_WORD})\s+as\s+({_WORD})", r"\1 \2", "a port is its type, then its name"),
    habit(
        rf"^({_WORD}\s+{_WORD})\s+(?:if|when|with|having|filter)\s+",
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


_STATEMENTS = (
    habit(
        r"\b(?:emit|output|send|return|yield|insert\s+into|raise|notify)\s+(?=\w)",
        "push ",
        "an event is put out by `push`",
    ),
    habit(r"^(case\s+[^:{]+?)\s+(?=push\b)", r"\1: ", "the labels of a case end with `:`"),
    habit(r"(?<!push )\bnew\s+(?=\w+\s*\{)", "push new ", "an event is put out by `push`"),
    habit(rf"\bpush\s+(?!new\b)({_WORD})\s*(?=\{{)", r"push new \1 ", "a new event is `push new`"),
    habit(
        rf"\bpush\s+new\s+({_WORD})\s*\(([^()]*)\)", r"push new \1 { \2 }", "values stand in `{}`"
    ),
    habit(r"([{,;]\s*[\w.]+)\s*:(?!:)\s*", r"\1 = ", "a value is given by `=`"),
    habit(r";(?=\s*[\w.]+\s*=)", ",", "values are parted by commas"),
    habit(r"[;,]\s*(?=\})", " ", "nothing follows the last value"),
    habit(rf"\{{\s*({_WORD})\s*\}}", r"{ \1 }", ""),
)


def rewrite_statement(draft: Draft) -> None:
    is_case = re.match(r"case\b[^:{]*:", draft.text)
    head = is_case[0] if is_case else ""
    draft.text = draft.text[len(head) :].strip()
    draft.apply(_STATEMENTS)
    draft.text = f"{head} {draft.text}".strip()
