"""Reads a definition that may be half written, by the grammar of the language.

In comes a text, out comes a `TextReading`: Lark's parse tree over all of it, and its words. Where
the text stops making sense, the parser is helped on: a terminal that is missing is put in, or a
word that fits nowhere is left out, whichever lets most of what follows be read. Terminals that were
put in are empty. Nothing is reported here: `ensue.lang.parsing` finds the mistakes for people, and
never guesses. `TextReader` is also asked what could stand at the end of a text, for completion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from lark import Token, Tree
from lark.lexer import AbstractBasicLexer, BasicLexer, ContextualLexer
from lark.parsers.lalr_analysis import Shift
from lark.utils import TextSlice

from ensue.lang.parsing.parser import grammar

LOOKAHEAD = 6
"""How many of the following words a repair is judged by."""
MOST_REPAIRS = 200
"""After so many a text is no definition, and the rest is only cut into words."""

END = "$END"
UNKNOWN = "UNKNOWN"
COMMENT = "COMMENT"

# What a half-written text is completed with, the closest way out first.
_CLOSING = (
    *("RBRACE", "CLOSE_ANGLE", "RPAR", "MORETHAN", "LBRACE", "SEMICOLON", "NAME", "COLON"),
    *("EQUAL", "DURATION", "INTEGER", "LPAR", "STRING_TYPE", "FIRST", "NONE", "LAST", "STRING"),
    *("_NULL", "LOGIC", "_CORRELATION", "_UNLESS", "_MODE_IN", "_DO"),
)
_ORDER = {name: number for number, name in enumerate(_CLOSING)}
_STRUCTURAL = frozenset(_CLOSING) - {"STRING", "LAST"} | {"COMMA"}
# A name that is followed like this was meant as a keyword, though only a name could stand there.
_KEYWORD_AHEAD = re.compile(
    r"within\s+\d|bind\s+(?:first|last|latest)\b|keep\s+(?:none|last|all)\b"
    r"|(?:by|unless|having)\s+[A-Za-z_(]|case\s+[A-Za-z_!(]|push\s+\w|push\s*\("
)
_GAP = re.compile(r"\s+")
_NOTE = re.compile(r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)")


@dataclass(frozen=True, slots=True)
class Word:
    """A word, sign, text or comment as it stands in the text; `type` is the grammar's terminal."""

    type: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TextReading:
    """`is_whole` says that nothing had to be repaired."""

    tree: Tree[Token]
    words: tuple[Word, ...]
    is_whole: bool


class TextReader:
    """Takes one text through the parser, word by word.

    A wary reader takes no keyword for a name where it is followed as a keyword would be; it is for
    texts that are known to have a mistake.
    """

    def __init__(self, text: str, wary: bool = False) -> None:
        self.text = text
        self._wary = wary
        self.words: list[Word] = []
        self.repairs = 0
        self._slice = TextSlice(text, 0, len(text))
        self._parser = grammar().parse_interactive("")
        self._states = self._parser.parser_state.parse_conf.parse_table.states
        self._end_state = self._parser.parser_state.parse_conf.end_state

    def read_all(self) -> None:
        """Read up to the end of the text; what is open then stays open."""
        at = 0
        while (at := self._past_gaps(at)) < len(self.text):
            if self.repairs >= MOST_REPAIRS:
                at = self._leave_out(at)
                continue
            stack = self._stack
            word = self._match(stack[-1], at)
            if word is not None and _fed(self._states, stack, word.type) is not None:
                self._feed(word)
                at = word.end
            else:
                at = self._repair(at)

    def accepted(self) -> set[str]:
        """The terminals that could stand next."""
        return set(self._accepted(self._stack))

    def put(self, type_: str, text: str = "") -> None:
        """Feed a word that does not stand in the text."""
        at = len(self.text)
        self._parser.feed_token(Token(type_, text, at, 1, 1, 1, 1, at + len(text)))

    def finish(self) -> Tree[Token]:
        """Close what is open; out comes the tree of everything."""
        for _ in range(MOST_REPAIRS):
            stack = self._stack
            if _fed(self._states, stack, END, self._end_state) is not None:
                at = len(self.text)
                eof = Token(END, "", at, 1, 1, 1, 1, at)
                return cast(Tree[Token], self._parser.feed_token(eof))
            self.repairs += 1
            self.put(self._accepted(stack)[0])
        return Tree("library", [])

    @property
    def _stack(self) -> list[int]:
        return self._parser.parser_state.state_stack

    def _accepted(self, stack: Sequence[int]) -> list[str]:
        """In the order in which they are tried: the closest way out first."""
        found = [
            each
            for each in self._states[stack[-1]]
            if each.isupper() and each != END and _fed(self._states, stack, each) is not None
        ]
        return sorted(found, key=lambda each: (_ORDER.get(each, len(_ORDER)), each))

    def _feed(self, word: Word) -> None:
        self.words.append(word)
        self._parser.feed_token(Token(word.type, word.text, word.start, 1, 1, 1, 1, word.end))

    def _past_gaps(self, at: int, keep: bool = True) -> int:
        while True:
            if gap := _GAP.match(self.text, at):
                at = gap.end()
            elif note := _NOTE.match(self.text, at):
                if keep:
                    self.words.append(Word(COMMENT, note[0], at, note.end()))
                at = note.end()
            else:
                return at

    def _match(self, state: int, at: int) -> Word | None:
        found = _match(_lexers().lexers[state], self._slice, at)
        if found is None or (
            self._wary and found[1] == "NAME" and _KEYWORD_AHEAD.match(self.text, at)
        ):
            return None
        return Word(found[1], found[0], at, at + len(found[0]))

    def _anything(self, at: int) -> Word:
        """The word at a place, wherever it could stand."""
        found = _match(_lexers().root_lexer, self._slice, at)
        if found is None:
            return Word(UNKNOWN, self.text[at], at, at + 1)
        return Word(found[1], found[0], at, at + len(found[0]))

    def _leave_out(self, at: int) -> int:
        word = self._anything(at)
        self.words.append(word)
        return word.end

    # --- repairs ---------------------------------------------------------------------------------

    def _repair(self, at: int) -> int:
        """Help the parser past a place; out comes where it goes on."""
        self.repairs += 1
        stack = list(self._stack)
        left_out = self._anything(at)
        # A word that is left out costs more than a sign that is put in: it was written.
        best, inserted = self._reach(stack, left_out.end) - 2, None
        for terminals, after in self._insertions(stack):
            worth = self._reach(after, at) - len(terminals)
            if worth > best:
                best, inserted = worth, terminals
        if inserted is None:
            self.words.append(left_out)
            return left_out.end
        for each in inserted:
            self._parser.feed_token(Token(each, "", at, 1, 1, 1, 1, at))
        return at

    def _insertions(self, stack: list[int]) -> Iterator[tuple[tuple[str, ...], list[int]]]:
        """What could be missing: a terminal, or up to three that hold texts together."""
        ways: list[tuple[tuple[str, ...], list[int]]] = [((), stack)]
        for depth in range(3):
            further = []
            for terminals, before in ways:
                for each in self._accepted(before):
                    if depth and each not in _STRUCTURAL:
                        continue
                    after = _fed(self._states, before, each)
                    assert after is not None
                    way = ((*terminals, each), after)
                    yield way
                    if each in _STRUCTURAL:
                        further.append(way)
            ways = further[:60]

    def _reach(self, stack: list[int], at: int) -> int:
        """How many of the next words can be read from a state."""
        for count in range(LOOKAHEAD):
            at = self._past_gaps(at, keep=False)
            if at >= len(self.text):
                return count + 1
            word = self._match(stack[-1], at)
            after = None if word is None else _fed(self._states, stack, word.type)
            if word is None or after is None:
                return count
            stack, at = after, word.end
        return LOOKAHEAD


def read(text: str) -> TextReading:
    """The whole of a text, repaired where it must be."""
    reader = TextReader(text)
    reader.read_all()
    tree = reader.finish()
    if reader.repairs == 0:
        return TextReading(tree, tuple(reader.words), is_whole=True)
    reader = TextReader(text, wary=True)
    reader.read_all()
    return TextReading(reader.finish(), tuple(reader.words), is_whole=False)


@cache
def _lexers() -> ContextualLexer:
    return cast(ContextualLexer, grammar().parser.lexer)


def _match(lexer: AbstractBasicLexer, text: TextSlice[str], at: int) -> tuple[str, str] | None:
    """The longest word at a place with its terminal."""
    scan: Any = cast(BasicLexer, lexer).scanner
    return cast("tuple[str, str] | None", scan.match(text, at))


def _fed(
    states: Any, stack: Sequence[int], terminal: str, end: int | None = None
) -> list[int] | None:
    """The stack of states after a terminal, or None where it cannot stand; nothing is built."""
    after = list(stack)
    while True:
        if end is not None and after[-1] == end:
            return after
        action = states[after[-1]].get(terminal)
        if action is None:
            return None
        kind, argument = action
        if kind is Shift:
            after.append(argument)
            return after
        if argument.expansion:
            del after[-len(argument.expansion) :]
        after.append(states[after[-1]][argument.origin.name][1])
