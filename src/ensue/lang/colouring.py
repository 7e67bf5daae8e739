"""Colours for library text: a lexer for Pygments, which sites, notebooks and editors use.

In comes the text of a library (*.cor), or a piece of one; out come tokens of Pygments. Words are
keywords only where they can stand, as in the grammar: an attribute may be called `first`.
`CaseLexer` does the same for golden cases, which are TOML with a library inside. Nothing is checked
here: a text with mistakes is coloured as far as it goes. Pygments finds both lexers by the names
`cor`, `ensue` and `cor-case` through the entry points of the package.
"""

from __future__ import annotations

import re
from typing import ClassVar

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer, bygroups, include, using, words
from pygments.lexers.configs import TOMLLexer
from pygments.style import Style
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

__all__ = ["CaseLexer", "LibraryLexer", "as_html"]

_NAME = r"[A-Za-z_]\w*"
_DURATION = r"\d+(?:\.\d+)?\s*(?:ms|s|min|h|d)\b"
_AGGREGATES = ("count", "distinct", "sum", "avg", "min", "max", "first", "last")
_TYPES = (
    *("short", "long", "unsigned", "float", "double", "boolean", "char", "octet"),
    *("string", "timestamp", "sequence"),
)
_BLOCKS = (
    *("accumulate", "select", "sequential", "parallel", "repeat", "persist", "loop"),
    *("notify", "fail", "modes", "do", "unless", "in", "timeout"),
)


class LibraryLexer(RegexLexer):
    """Libraries of Ensue."""

    name = "Ensue library"
    aliases: ClassVar[list[str]] = ["cor", "ensue"]
    filenames: ClassVar[list[str]] = ["*.cor"]
    mimetypes: ClassVar[list[str]] = ["text/x-ensue"]
    flags = re.MULTILINE

    tokens: ClassVar = {
        "root": [
            include("blank"),
            (
                r"(import)(\s*)(?=[\"'])",
                bygroups(Keyword.Declaration, Whitespace),
                "line",
            ),
            (
                rf"(parameter)(\s+)(?!(?:correlation|ecl)\b)(?={_NAME})",
                bygroups(Keyword.Declaration, Whitespace),
                "parameter",
            ),
            (
                rf"(?:(internal)(\s+))?(use)(\s+)({_NAME})(\s+)(as)(\s+)({_NAME})",
                bygroups(
                    *(Keyword.Declaration, Whitespace, Keyword.Declaration, Whitespace),
                    *(Name.Function, Whitespace, Keyword, Whitespace, Name.Function),
                ),
                "use",
            ),
            (
                rf"(eventtype)(\s+)({_NAME})",
                bygroups(Keyword.Declaration, Whitespace, Name.Class),
                "eventtype",
            ),
            (
                rf"(?:(internal|template)(\s+))?({_NAME})(\s+)(correlation|ecl)(\s+)({_NAME})(\s*)(\()",
                bygroups(
                    *(
                        Keyword.Declaration,
                        Whitespace,
                        Name.Class,
                        Whitespace,
                        Keyword.Declaration,
                        Whitespace,
                    ),
                    *(Name.Function, Whitespace, Punctuation),
                ),
                ("head", "ports"),
            ),
            # A piece of a library: a filter, a clause or a statement by itself.
            include("clauses"),
            include("statements"),
            include("filter"),
            include("expression"),
        ],
        "blank": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*[\s\S]*?(?:\*/|\Z)", Comment.Multiline),
        ],
        "line": [
            include("blank"),
            include("strings"),
            (r";", Punctuation, "#pop"),
            (r"(?=.)", Whitespace, "#pop"),
        ],
        "parameter": [
            include("blank"),
            (rf"{_NAME}(?=\s*=)", Name.Constant),
            (r"=", Punctuation, ("#pop", "value")),
            (words((*_TYPES, "duration"), suffix=r"\b"), Keyword.Type),
            (r"[<>]", Punctuation),
            (r"(?=.)", Whitespace, "#pop"),
        ],
        "value": [
            include("blank"),
            (r";", Punctuation, "#pop"),
            (r"(?=(?:eventtype|parameter|import|use|internal|template)\b)", Whitespace, "#pop"),
            (_DURATION, Number),
            include("expression"),
            (r"(?=.)", Whitespace, "#pop"),
        ],
        "use": [
            include("blank"),
            (r";", Punctuation, "#pop"),
            (r"\(", Punctuation, "wirings"),
            (r"(with)(\s*)(\{)", bygroups(Keyword, Whitespace, Punctuation), "settings"),
            (r"(?=.)", Whitespace, "#pop"),
        ],
        "wirings": [
            include("blank"),
            (rf"({_NAME})(\s+)(from)\b", bygroups(Name.Variable, Whitespace, Keyword)),
            (r"outside\b", Name.Builtin),
            include("strings"),
            (_NAME, Name.Function),
            (r",", Punctuation),
            (r"\)", Punctuation, "#pop"),
        ],
        "settings": [
            include("blank"),
            (rf"({_NAME})(\s*)(=)", bygroups(Name.Constant, Whitespace, Punctuation)),
            (_DURATION, Number),
            (r",", Punctuation),
            (r"\}", Punctuation, "#pop"),
            include("expression"),
        ],
        "eventtype": [
            include("blank"),
            include("strings"),
            (r"[=:]", Punctuation),
            (_NAME, Name.Class),
            (r"\{", Punctuation, ("#pop", "attributes")),
            (r"(?=.)", Whitespace, "#pop"),
        ],
        "attributes": [
            include("blank"),
            (words(("attribute", "public"), suffix=r"\b"), Keyword, "attribute"),
            (r"\}", Punctuation, "#pop"),
            (_NAME, Name.Attribute),
            (r"[,;.<>]", Punctuation),
        ],
        "attribute": [
            include("blank"),
            (rf"{_NAME}(?=\s*[,;.}}=])", Name.Attribute),
            (r"=", Punctuation, ("#pop", "derived")),
            (words(_TYPES, suffix=r"\b"), Keyword.Type),
            (_NAME, Name.Attribute),
            (r"[,.<>]", Punctuation),
            (r";", Punctuation, "#pop"),
            (r"(?=\})", Punctuation, "#pop"),
        ],
        "derived": [
            include("blank"),
            (r"\(", Punctuation, "brackets"),
            (r";", Punctuation, "#pop"),
            (r"(?=\})", Punctuation, "#pop"),
            include("expression"),
        ],
        "ports": [
            include("blank"),
            (
                rf"(every|deadline)(\s+)({_DURATION})(\s+)({_NAME})",
                bygroups(Keyword, Whitespace, Number, Whitespace, Name.Variable),
            ),
            (
                rf"(every|deadline)(\s+)({_NAME})(\s+)({_NAME})(?=\s*[,)])",
                bygroups(Keyword, Whitespace, Name.Constant, Whitespace, Name.Variable),
            ),
            (rf"({_NAME})(\s+)({_NAME})", bygroups(Name.Class, Whitespace, Name.Variable), "port"),
            (r"\)", Punctuation, "#pop"),
            include("expression"),
        ],
        "port": [
            include("blank"),
            (r"from\b", Keyword),
            (r"outside\b", Name.Builtin),
            include("strings"),
            (r"where\b", Keyword, ("#pop", "condition")),
            # A name after `from`, or after a comma and before none: a rule.
            (rf"(?<=from\s){_NAME}", Name.Function),
            (
                rf"(,)(\s*)({_NAME})(?=\s*(?:[,)]|where\b))",
                bygroups(Punctuation, Whitespace, Name.Function),
            ),
            (r"(,)(\s*)(?=[\"'])", bygroups(Punctuation, Whitespace)),
            (r"(?=\S)", Whitespace, "#pop"),
        ],
        "condition": [
            include("blank"),
            (r"\(", Punctuation, "brackets"),
            (r"(?=[,)])", Whitespace, "#pop"),
            include("expression"),
        ],
        "brackets": [
            include("blank"),
            (r"\(", Punctuation, "#push"),
            (r"\)", Punctuation, "#pop"),
            include("expression"),
        ],
        "head": [
            include("blank"),
            include("clauses"),
            include("filter"),
            (r"\{", Punctuation, ("#pop", "body")),
            include("expression"),
        ],
        "clauses": [
            (
                r"(bind)(\s+)(first|last|latest)\b",
                bygroups(Keyword, Whitespace, Keyword.Constant),
            ),
            (r"(keep)(\s+)(none|last|all)\b", bygroups(Keyword, Whitespace, Keyword.Constant)),
            (rf"(within)(\s+)({_DURATION})", bygroups(Keyword, Whitespace, Number)),
            (r"(by|unless|having|within|bind|keep)\b(?!\s*[.=:;+|])", Keyword),
        ],
        "filter": [
            (rf"timeout(?=\s*\(\s*{_NAME}\s*\))", Keyword),
            (
                rf"(timeout)(\s*)(\()(\s*)({_DURATION})",
                bygroups(Keyword, Whitespace, Punctuation, Whitespace, Number),
            ),
            (
                r"(\{)(\s*)(\d+)([\s,\d]*)(\})",
                bygroups(Punctuation, Whitespace, Number, Number, Punctuation),
            ),
            (rf"({_NAME})(\s*)(:)(?!:)", bygroups(Name.Label, Whitespace, Punctuation)),
        ],
        "body": [
            include("blank"),
            (r"\{", Punctuation, "#push"),
            (r"\}", Punctuation, "#pop"),
            include("statements"),
            (words(_BLOCKS, suffix=r"\b(?=\s*[\{\(*])"), Keyword),
            (_DURATION, Number),
            include("expression"),
        ],
        "statements": [
            (r"case\b(?!\s*[.=])", Keyword, "labels"),
            (
                rf"(push)(\s+)(new)(\s+)({_NAME})",
                bygroups(Keyword, Whitespace, Keyword, Whitespace, Name.Class),
            ),
            (
                rf"(push)(\s*)(\()(\s*)({_NAME})(\s*)(\))",
                bygroups(
                    *(Keyword, Whitespace, Punctuation, Whitespace),
                    *(Name.Class, Whitespace, Punctuation),
                ),
            ),
            (rf"(push)(\s+)({_NAME})", bygroups(Keyword, Whitespace, Name.Variable)),
            (words(("abort", "revive", "toggle"), suffix=r"\b(?=\s*\()"), Keyword),
            (r"with\b(?=\s*\{)", Keyword),
        ],
        "labels": [
            include("blank"),
            (r"true\b", Keyword.Constant),
            (_NAME, Name.Label),
            (r"[&|!]", Operator),
            (r"[()]", Punctuation),
            (r":", Punctuation, "#pop"),
            (r"(?=[^\s])", Whitespace, "#pop"),
        ],
        "strings": [
            (r'"(?:\\.|[^"\\\n])*"?', String.Double),
            (r"'(?:\\.|[^'\\\n])*'?", String.Single),
        ],
        "expression": [
            include("blank"),
            include("strings"),
            (r"\d{4}-\d\d-\d\d[Tt][\d:.]+(?:[Zz]|[+-]\d\d:\d\d)", Number),
            (r"\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+", Number.Float),
            (_DURATION, Number),
            (r"\d+", Number.Integer),
            (
                r"(?i:and|or|xor|not|like|in|is|between|exists|matches|has|any|all|only"
                r"|is_a|subsumes|same_as|after|before|during|times|filter|meets|met_by|overlaps"
                r"|overlapped_by|starts|started_by|contains|finishes|finished_by|equals)"
                r"\b(?!\s*[.=,;:)])",
                Operator.Word,
            ),
            (r"(?i:null)\b(?!\s*[.=])", Operator.Word),
            (r"(?i:true|false)\b", Keyword.Constant),
            (r"(?i:ontprop)(?=\s*<)", Name.Builtin),
            (rf"(?i:{'|'.join(_AGGREGATES)})\b(?=\s*\()", Name.Builtin),
            (rf"{_NAME}(?=\s*\()", Name.Builtin),
            (rf"({_NAME})(:)({_NAME})", bygroups(Name.Namespace, Punctuation, Name.Constant)),
            (_NAME, Name.Variable),
            (r"<=|>=|!=|<>|\|\||[=<>+*/%|&!-]", Operator),
            (r"[(){}\[\].,;:]", Punctuation),
        ],
    }


class CaseLexer(RegexLexer):
    """Golden cases of Ensue: TOML, in which what follows `library =` is library text."""

    name = "Ensue golden cases"
    aliases: ClassVar[list[str]] = ["cor-case"]
    filenames: ClassVar[list[str]] = []
    flags = re.MULTILINE

    tokens: ClassVar = {
        "root": [
            (
                r"^(library)([ \t]*)(=)([ \t]*)(''')([\s\S]*?)(''')",
                bygroups(
                    *(Name.Attribute, Whitespace, Operator, Whitespace, String),
                    *(using(LibraryLexer), String),
                ),
            ),
            (r"(?:(?!library[ \t]*=[ \t]*''')[^\n]*\n)+", using(TOMLLexer)),
            (r"[^\n]+", using(TOMLLexer)),
        ],
    }


class BothGrounds(Style):
    """Colours of medium lightness, legible on a light and on a dark background."""

    styles: ClassVar = {
        Comment: "italic #808080",
        Keyword: "bold #b0640f",
        Keyword.Type: "nobold #b5487f",
        Keyword.Constant: "nobold #b5487f",
        Name.Class: "bold #2f7fb8",
        Name.Function: "#2f7fb8",
        Name.Label: "#9560c9",
        Name.Builtin: "#2f7fb8",
        Number: "#5f8812",
        String: "#2e8b57",
        Operator.Word: "bold #b0640f",
    }


def as_html(text: str) -> str:
    """Library text as HTML with inline colours, for a notebook."""
    formatter = HtmlFormatter(style=BothGrounds, noclasses=True, nobackground=True)
    return str(highlight(text, LibraryLexer(), formatter))
