"""From the text of a library to its syntax tree.

In comes a `Source`; out comes a `LibraryTree` with the definitions that could be read; mistakes go
into the `Diagnostics`. The grammar (`grammar.lark`) is the language's reference; Lark builds an
LALR(1) parser from it, which is cached (`parser_cache`).
The text is cut into definitions first (`ensue.lang.parsing.cutting`), so that one mistake hides
nothing after it. No step recurses over the text, and nesting is bounded before nodes are made.
Names and types are not looked at here: that is the checker's part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from lark.utils import TextSlice

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.garbage_collection import collection_paused
from ensue.lang.limits import DEFAULT_LIMITS, Limits, report_limit
from ensue.lang.parsing import cutting, recovering
from ensue.lang.parsing.cutting import Piece
from ensue.lang.parsing.files import read_source
from ensue.lang.parsing.hidden_characters import report_hidden_characters
from ensue.lang.parsing.parser_cache import parser_of
from ensue.lang.parsing.reading import LibraryReading
from ensue.lang.parsing.recovering import place_of
from ensue.lang.source import Source, Span
from ensue.lang.syntax import Definition, LibraryTree

__all__ = ["grammar", "parse_tree", "read_source"]

# Lark counts lines from the top of the text for every slice, so that many small definitions are
# parsed together.
_CHARACTERS_AT_ONCE = 32_768
# A user has seen enough after so many; a file that is no library could have any number.
_MOST_SYNTAX_ERRORS = 100
_MOST_IN_A_DEFINITION = 20

# The rules of nodes that are deeper than their parts. A bracket adds no depth.
_NESTING = frozenset(
    [
        "either",
        "then",
        "both",
        "label",
        "repeated",
        "label_or",
        "label_and",
        "label_negation",
        "sequence",
        "group",
        "unless",
        "fail",
        "round",
        "push",
        "notify",
        "mode",
        "logic",
        "comparison",
        "additive",
        "multiplicative",
        "like",
        "matches",
        "in_set",
        "between",
        "not_between",
        "is_null",
        "not_",
        "negate",
        "call",
        "passed",
        "during",
        "related",
        "compared",
    ]
)
_BRACKETS = frozenset({"grouped", "bracket"})


def parse_tree(
    source: Source, diagnostics: Diagnostics, limits: Limits = DEFAULT_LIMITS
) -> LibraryTree:
    """The definitions of a library, as far as they can be read."""
    text = source.text
    size = _size_in_bytes(text) - len(source.files)
    if size > limits.bytes:
        report_limit(diagnostics, limits, "bytes", size, Span(0, 1))
        return LibraryTree()
    report_hidden_characters(text, diagnostics)
    pieces = cutting.by_depth(text, limits.nesting)
    if len(pieces) > limits.definitions:
        first_beyond = pieces[limits.definitions].start
        span = Span(first_beyond, first_beyond + 1)
        report_limit(diagnostics, limits, "definitions", len(pieces), span)
        return LibraryTree()
    if _report_words(text, pieces, diagnostics, limits):
        return LibraryTree()
    with collection_paused():
        return LibraryTree(tuple(_Reader(text, diagnostics, limits).read(pieces)))


@cache
def grammar() -> Lark:
    """The parser of the language, loaded or built at its first use."""
    return parser_of(
        files("ensue.lang.parsing").joinpath("grammar.lark").read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        maybe_placeholders=True,
        start="library",
    )


class _Reader:
    """Reads the pieces of one text in order."""

    def __init__(self, text: str, diagnostics: Diagnostics, limits: Limits) -> None:
        self.text = text
        self.diagnostics = diagnostics
        self.limits = limits
        self.reading = LibraryReading(diagnostics, limits)
        self.syntax_errors = 0

    def read(self, pieces: Sequence[Piece]) -> Iterator[Definition]:
        at = 0
        while at < len(pieces) and self.syntax_errors < _MOST_SYNTAX_ERRORS:
            if pieces[at].too_deep is not None:
                yield from self._recover(pieces[at], None)
                at += 1
                continue
            end = at + 1
            while (
                end < len(pieces)
                and pieces[end].too_deep is None
                and pieces[end].end - pieces[at].start < _CHARACTERS_AT_ONCE
            ):
                end += 1
            culprit, error, tree = self._parse(pieces[at:end])
            if tree is not None:
                yield from self._definitions(tree)
                at = end
                continue
            # The pieces before the piece with the mistake have none.
            _, _, tree = self._parse(pieces[at : at + culprit])
            if tree is not None:
                yield from self._definitions(tree)
            yield from self._recover(pieces[at + culprit], error if end == at + 1 else None)
            at += culprit + 1

    def _parse(
        self, pieces: Sequence[Piece]
    ) -> tuple[int, UnexpectedInput | None, Tree[Token] | None]:
        """The parse tree of pieces, or the number of the piece with a mistake, and the error."""
        if not pieces:
            return 0, None, None
        start, end = pieces[0].start, pieces[-1].end
        try:
            return 0, None, grammar().parse(TextSlice(self.text, start, end))
        except UnexpectedInput as error:
            place = place_of(error, end).start
            # A mistake at the first word of a piece belongs to the unfinished piece before.
            ends = (number for number, piece in enumerate(pieces) if place <= piece.start)
            following = next(ends, len(pieces))
            return max(0, following - 1), error, None

    def _recover(self, piece: Piece, error: UnexpectedInput | None) -> Iterator[Definition]:
        """Read the correct definitions in a piece with a mistake, and report the mistake."""
        parts = cutting.by_words(self.text, piece, self.limits.nesting)
        broken = False
        for part in parts:
            if self.syntax_errors >= _MOST_SYNTAX_ERRORS:
                return
            # A part that begins with a sign is the rest of the broken definition before it.
            if broken and not cutting.begins_with_word(self.text, part):
                continue
            if part.too_deep is not None:
                self._refuse_depth(part)
                broken = True
                continue
            same = error is not None and (part.start, part.end) == (piece.start, piece.end)
            failure, tree = (error, None) if same else self._parse([part])[1:]
            broken = failure is not None
            if failure is not None:
                self._report(failure, part)
                self._look_further(failure, part)
            elif tree is not None:
                yield from self._definitions(tree)

    def _look_further(self, error: UnexpectedInput, piece: Piece) -> None:
        """Report further mistakes in a definition, behind its first one."""
        text, units = self.text, recovering.units_of(self.text, piece)
        for _ in range(_MOST_IN_A_DEFINITION):
            unit = recovering.unit_with(units, place_of(error, piece.end).start)
            patched = None if unit is None else recovering.blanked(text, unit)
            if unit is None or patched is None or self.syntax_errors >= _MOST_SYNTAX_ERRORS:
                return
            text = patched
            units.remove(unit)
            try:
                grammar().parse(TextSlice(text, piece.start, piece.end))
            except UnexpectedInput as further:
                place = place_of(further, piece.end).start
                if place <= max(unit.end, place_of(error, piece.end).start):
                    # The stand-in for the unit did not help: nothing is known of the rest.
                    return
                self._report(further, piece)
                error = further
            else:
                return

    def _report(self, error: UnexpectedInput, piece: Piece) -> None:
        # Loads a hundred kinds of advice, which most texts do not need.
        from ensue.lang.parsing.syntax_errors import report_syntax_error

        self.syntax_errors += 1
        report_syntax_error(error, grammar().terminals, piece, self.diagnostics, _parses)

    def _refuse_depth(self, piece: Piece) -> None:
        at = piece.too_deep or piece.start
        given = f"more than {self.limits.nesting}"
        report_limit(self.diagnostics, self.limits, "nesting", given, Span(at, at + 1))

    def _definitions(self, tree: Tree[Token]) -> Iterator[Definition]:
        kept = [
            each
            for each in tree.children
            if isinstance(each, Tree) and not _report_depth(each, self.diagnostics, self.limits)
        ]
        definitions: list[Definition] = self.reading.transform(Tree("library", list(kept)))
        yield from definitions


def _parses(text: str) -> bool:
    """Whether a text parses as a definition, for lines that a hint offers."""
    try:
        grammar().parse(text)
    except UnexpectedInput:
        return False
    return True


def _report_words(
    text: str, pieces: Sequence[Piece], diagnostics: Diagnostics, limits: Limits
) -> bool:
    """Report a definition that has too many words; true if there is one."""
    found = False
    for piece in pieces:
        # A definition that is nested too deeply is refused for that, and never read as a whole.
        beyond = None if piece.too_deep else cutting.words_past(text, piece, limits.words)
        if beyond is not None:
            given = f"more than {limits.words:,}"
            report_limit(diagnostics, limits, "words", given, Span(beyond, beyond + 1))
            found = True
    return found


def _report_depth(tree: Tree[Token], diagnostics: Diagnostics, limits: Limits) -> bool:
    """Report a parse tree that is nested too deeply; true if it is."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > limits.nesting:
            span = Span(node.meta.start_pos, node.meta.end_pos)
            given = f"more than {limits.nesting}"
            report_limit(diagnostics, limits, "nesting", given, span)
            return True
        for child in node.children:
            if isinstance(child, Tree):
                around = child.data in _BRACKETS and not (
                    isinstance(child.children[0], Tree) and child.children[0].data in _NESTING
                )
                waiting.append((child, depth + (around or child.data in _NESTING)))
    return False


def _size_in_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
