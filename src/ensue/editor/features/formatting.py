"""The one layout of libraries, with comments kept: for `ensue fmt` and for editors.

In comes the text of a file, out goes the text in the layout of `ensue.lang.printer`. Definitions
that cannot be read stay as they are. A comment keeps its place between the words around it: behind
the word on whose line it stood, or on a line of its own before the next word. Blank lines between
definitions are kept, one at most. Each definition is read again after it was laid out, and left
alone if its meaning or a comment of it had changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ensue.editor.documents import Document
from ensue.editor.reading import COMMENT, Word, read
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.parsing.parser import parse_tree
from ensue.lang.printer import print_definition
from ensue.lang.source import Source
from ensue.lang.syntax import Definition

_INDENT = "    "
_LINES = frozenset({"_EVENTTYPE", "_IMPORT", "_PARAMETER", "_USE"})
"""The first words of definitions that stand line by line, without blank lines between them."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A definition or a comment between definitions."""

    text: str
    start: int
    end: int
    is_comment: bool
    is_rule: bool = False


def format_text(text: str) -> str:
    """The text in the one layout; as it is where nothing of it can be read."""
    document = Document("", text.replace("\r\n", "\n"))
    items = list(_items(document))
    if not items:
        return text
    parts: list[str] = []
    before: _Item | None = None
    for item in items:
        if before is not None:
            parts.append(_between(document.text[before.end : item.start], before, item))
        parts.append(item.text)
        before = item
    laid_out = "".join(parts).strip("\n") + "\n"
    return laid_out.replace("\n", "\r\n") if "\r\n" in text else laid_out


def _between(gap: str, before: _Item, after: _Item) -> str:
    """What stands between two items: nothing but line ends, or two spaces before a comment."""
    if after.is_comment and "\n" not in gap:
        last = read(before.text).words[-1]
        # A comment that ends with its line may have come to stand at the end of the definition.
        return "\n" if last.type == COMMENT and last.text.startswith("//") else "  "
    if before.is_comment and before.text.startswith("/*") and "\n" not in gap:
        return " "
    apart = before.is_rule or (after.is_rule and not before.is_comment)
    return "\n\n" if gap.count("\n") > 1 or apart else "\n"


def _items(document: Document) -> Iterator[_Item]:
    """Definitions and the comments between them, from top to bottom."""
    text = document.text
    for definition in document.definitions:
        words = [
            Word(each.type, each.text, each.start + definition.start, each.end + definition.start)
            for each in definition.reading.words
        ]
        written = [number for number, each in enumerate(words) if each.type != COMMENT]
        if not written:
            yield from (_comment(each) for each in words)
            continue
        first, last = written[0], written[-1]
        yield from (_comment(each) for each in words[:first])
        start, end = words[first].start, words[last].end
        begun = [each.type for each in words[first : first + 2]]
        is_line = not _LINES.isdisjoint(begun[:1] if begun[0] != "INTERNAL" else begun[1:])
        inside = words[first : last + 1]
        shown = _laid_out(text[start:end], inside, start) if definition.reading.is_whole else None
        yield _Item(shown or text[start:end], start, end, is_comment=False, is_rule=not is_line)
        yield from (_comment(each) for each in words[last + 1 :])


def _comment(word: Word) -> _Item:
    return _Item(word.text.rstrip(), word.start, word.end, is_comment=True)


def _laid_out(text: str, words: Sequence[Word], start: int) -> str | None:
    """One definition in the layout, or None if that cannot be done without a loss."""
    node = _definition(text)
    if node is None:
        return None
    own = [Word(each.type, each.text, each.start - start, each.end - start) for each in words]
    comments = [each for each in own if each.type == COMMENT]
    if not comments:
        return print_definition(node)
    woven = _Weaving(text, own, print_definition(node, spread=True)).text()
    kept = [each.text.rstrip() for each in read(woven).words if each.type == COMMENT]
    is_same = _definition(woven) == node and kept == [each.text.rstrip() for each in comments]
    return woven if is_same else None


def _definition(text: str) -> Definition | None:
    diagnostics = Diagnostics(Source.of(text))
    tree = parse_tree(diagnostics.source, diagnostics)
    if diagnostics.has_errors or len(tree.definitions) != 1:
        return None
    return tree.definitions[0]


class _Weaving:
    """Puts the comments of a text between the words of its printed form."""

    def __init__(self, text: str, words: Sequence[Word], printed: str) -> None:
        self.source = text
        self.words = words
        self.printed = printed
        self.targets = read(printed).words
        self._insertions: list[tuple[int, int, str]] = []

    def text(self) -> str:
        plain = [each for each in self.words if each.type != COMMENT]
        matches = _matched(plain, self.targets)
        passed = 0
        for number, word in enumerate(self.words):
            if word.type != COMMENT:
                passed += 1
                continue
            before = self.words[number - 1]
            if "\n" in self.source[before.end : word.start]:
                self._lead(word, _next(matches, passed, len(self.targets)))
            else:
                self._trail(word, _previous(matches, passed - 1))
        return self._joined()

    def _joined(self) -> str:
        """The printed text with what was inserted; no line is empty, and none begins askew."""
        parts = ""
        at = 0
        for place, _, inserted in sorted(self._insertions):
            parts = _appended(parts, self.printed[at:place])
            parts = _appended(parts, inserted)
            at = place
        whole = _appended(parts, self.printed[at:])
        return "\n".join(line.rstrip() for line in whole.split("\n"))

    def _insert(self, at: int, text: str) -> None:
        # Of what goes to one place, the first stays first.
        self._insertions.append((at, len(self._insertions), text))

    def _trail(self, comment: Word, target: int) -> None:
        """Behind a word, and behind the comma or semicolon that follows it."""
        following = self.targets[target + 1 : target + 2]
        if following and following[0].text in ",;":
            target += 1
        at = self.targets[target].end
        ends_line = self.printed[at : at + 1] in ("\n", "")
        if comment.text.startswith("//") and not ends_line:
            # What goes on behind the comment goes on below it, further in.
            self._insert(at, f"  {comment.text.rstrip()}\n{self._indent(at)}{_INDENT}")
        else:
            self._insert(at, f"  {comment.text.rstrip()}")

    def _lead(self, comment: Word, target: int) -> None:
        """On a line of its own before a word."""
        at = self.targets[target].start
        indent = self._indent(at)
        starts_line = self.printed[:at].rpartition("\n")[2].strip() == ""
        if starts_line:
            inside = _INDENT if self.targets[target].text == "}" and not indent else ""
            self._insert(at - len(indent), f"{indent}{inside}{comment.text.rstrip()}\n")
        else:
            further = indent + _INDENT
            self._insert(at, f"\n{further}{comment.text.rstrip()}\n{further}")

    def _indent(self, at: int) -> str:
        line = self.printed[:at].rpartition("\n")[2]
        return line[: len(line) - len(line.lstrip())]


def _appended(before: str, text: str) -> str:
    """Two stretches joined. Where a line has only been indented yet, it is not indented twice."""
    line = before.rpartition("\n")[2]
    if not before or line.strip() or (not line and not text.startswith("\n")):
        return before + text
    if text.startswith("\n"):
        return before[: len(before) - len(line)] + text[1:]
    return before + text.lstrip(" ")


def _matched(words: Sequence[Word], targets: Sequence[Word]) -> dict[int, int]:
    """Which printed word each written one has become; some have none, and some are new."""
    matcher = SequenceMatcher(
        None, [each.text for each in words], [each.text for each in targets], autojunk=False
    )
    return {
        block.a + step: block.b + step
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    }


def _next(matches: dict[int, int], index: int, length: int) -> int:
    later = [target for number, target in matches.items() if number >= index]
    return min(later, default=length - 1)


def _previous(matches: dict[int, int], index: int) -> int:
    earlier = [target for number, target in matches.items() if number <= index]
    return max(earlier, default=0)
