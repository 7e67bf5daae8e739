"""A correlation in words: what its expression waits for, as sentences and as an outline.

In come nodes of a checked syntax tree; out go texts. An outline has a line for each operator, with
its meaning beside it. Chains may have thousands of parts, so both forms leave out the middle of a
long chain. The engines define the exact meaning of the operators.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ensue.lang import syntax
from ensue.lang.durations import print_duration
from ensue.lang.expressions.text.printing import print_expression

MOST_PARTS_IN_WORDS = 5
MOST_BRACKETS = 4
LONGEST_SENTENCE = 400
MOST_PARTS_IN_OUTLINE = 12
NARROWEST_MEANING = 16

Node = syntax.Filter | syntax.Ecl
Part = TypeVar("Part")


@dataclass(frozen=True)
class OutlineLine:
    """A line of an outline: an operator, its meaning, and the lines of its operands."""

    text: str
    meaning: str = ""
    parts: tuple[OutlineLine, ...] = ()


# --- in words ---------------------------------------------------------------------------------


def in_words(node: Node) -> str | None:
    """A sentence without its full stop; None if it is too long or has too many brackets."""
    words = _words(node, alone=True)
    is_readable = len(words) <= LONGEST_SENTENCE and words.count("(") <= MOST_BRACKETS
    return words if is_readable else None


def _words(node: Node, alone: bool = False) -> str:
    """A node in words, in brackets if it would run into the words around it."""
    text, is_simple = _say(node)
    return text if alone or is_simple else f"({text})"


def _say(node: Node) -> tuple[str, bool]:
    match node:
        case syntax.PortRef(name):
            return f"`{name}`", True
        case syntax.Labelled(_, body):
            return _say(body)
        case syntax.Times(body, count):
            return f"{_words(body)} {_times(count)}", True
        case syntax.Both(parts):
            return f"{_joined(parts, ' and ')} in any order", False
        case syntax.Either(parts):
            return f"{_joined(parts, ' or ')}", False
        case syntax.Then(parts):
            return _joined(parts, ", then "), False
        case syntax.Holds(predicate):
            return f"an event with `{print_expression(predicate)}`", True
        case syntax.Constant(value):
            return ("any event it reads" if value else "nothing (it fails)"), True
        case syntax.Timeout(after):
            return f"{print_duration(after)} passing", True
        case syntax.Group():
            return _say_group(node), False
        case syntax.Unless(body, stop):
            return f"{_words(body)} unless {_words(stop)} comes first", False
        case syntax.Fail(body):
            return f"{_words(body)}, which then counts as failed", False
        case syntax.Round():
            return _say_round(node), False
        case syntax.Push(_, body):
            return _say(body)
        case syntax.Modes(modes):
            entries = [f"from {_words(mode.guard)} on, {_words(mode.body)}" for mode in modes]
            return f"one mode at a time, the first to begin with: {'; '.join(entries)}", False


def _say_group(node: syntax.Group) -> str:
    match node.kind:
        case "accumulate":
            return f"{_joined(node.parts, ' and ')} in any order"
        case "select":
            return _joined(node.parts, " or ")
        case "select*":
            return f"{_joined(node.parts, ' or ')}, and fails as soon as one of them fails"
        case "sequential":
            return _joined(node.parts, ", then ")
        case "parallel":
            return f"side by side: {_joined(node.parts, '; ')}"


def _say_round(node: syntax.Round) -> str:
    body = _words(node.body)
    match node.kind:
        case "repeat":
            return (
                f"{body}, again and again"
                if node.bound is None
                else f"{body}, {node.bound:,} rounds"
            )
        case "persist":
            most = "" if node.bound is None else f", at most {_times(node.bound)}"
            return f"{body}, tried until it succeeds{most}"
        case "loop":
            end = "" if node.bound is None else f" or {node.bound:,} rounds are done"
            return f"{body}, again and again until it fails{end}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _joined(parts: Sequence[Node], link: str) -> str:
    shown = shortened(parts, MOST_PARTS_IN_WORDS, _words, lambda left_out: f"{left_out:,} more")
    return link.join(shown)


def shortened(
    parts: Sequence[Part],
    most: int,
    show: Callable[[Part], str],
    say_left_out: Callable[[int], str],
) -> list[str]:
    """All parts; of a long list the first ones, the number of parts left out, and the last."""
    if len(parts) <= most:
        return [show(part) for part in parts]
    left_out = say_left_out(len(parts) - most)
    return [*(show(part) for part in parts[: most - 1]), left_out, show(parts[-1])]


# --- as an outline ----------------------------------------------------------------------------


def outline(node: Node) -> OutlineLine:
    match node:
        case syntax.PortRef(name):
            return OutlineLine(name)
        case syntax.Labelled(label, body):
            inside = outline(body)
            return OutlineLine(f"{label}: {inside.text}", inside.meaning, inside.parts)
        case syntax.Times(body, count):
            return OutlineLine(
                f"{{{count}}}", f"{_times(count)}, one after the other", (outline(body),)
            )
        case syntax.Both(parts):
            return OutlineLine("+", "all of these, in any order", _outlines(parts))
        case syntax.Either(parts):
            return OutlineLine("|", "one of these", _outlines(parts))
        case syntax.Then(parts):
            return OutlineLine(";", "one after the other", _outlines(parts))
        case syntax.Holds(predicate):
            return OutlineLine(f"< {print_expression(predicate)} >", "an event of which this holds")
        case syntax.Constant(value):
            return OutlineLine(*(("true", "any event it reads") if value else ("false", "fails")))
        case syntax.Timeout(after):
            time = print_duration(after)
            return OutlineLine(f"timeout({time})", f"when {time} have passed")
        case syntax.Group(kind, parts):
            return OutlineLine(kind, _GROUPS[kind], _outlines(parts))
        case syntax.Unless(body, stop):
            stopping = outline(stop)
            return OutlineLine(
                "do",
                "succeeds with this",
                (
                    outline(body),
                    OutlineLine("unless", "but fails if this comes first", (stopping,)),
                ),
            )
        case syntax.Fail(body):
            return OutlineLine("fail", "fails when this succeeds", (outline(body),))
        case syntax.Round(kind, body, bound):
            text = kind if bound is None else f"{kind}({bound})"
            return OutlineLine(text, _round_meaning(node), (outline(body),))
        case syntax.Push(type_, body):
            text = "notify" if type_ is None else f"push({type_})"
            output = "the output type" if type_ is None else type_
            return OutlineLine(text, f"puts out {output} when this succeeds", (outline(body),))
        case syntax.Modes(modes):
            return OutlineLine(
                "modes", "one at a time; the first to begin with", _mode_outlines(modes)
            )


_GROUPS = {
    "accumulate": "all of these, in any order; fails if one fails",
    "select": "one of these; fails if all fail",
    "select*": "one of these; fails if one fails",
    "sequential": "one after the other",
    "parallel": "side by side, without end",
}


def _round_meaning(node: syntax.Round) -> str:
    match node.kind:
        case "repeat":
            end = "without end" if node.bound is None else f"{node.bound:,} rounds"
            return f"again and again, {end}"
        case "persist":
            most = "" if node.bound is None else f"; fails after {node.bound:,} failures"
            return f"again until it succeeds{most}"
        case "loop":
            most = "" if node.bound is None else f"; succeeds after {node.bound:,} rounds"
            return f"again until it fails{most}"


def _outlines(parts: Sequence[Node]) -> tuple[OutlineLine, ...]:
    if len(parts) <= MOST_PARTS_IN_OUTLINE:
        return tuple(outline(part) for part in parts)
    left_out = OutlineLine(f"... {len(parts) - MOST_PARTS_IN_OUTLINE:,} more")
    first = tuple(outline(part) for part in parts[: MOST_PARTS_IN_OUTLINE - 1])
    return (*first, left_out, outline(parts[-1]))


def _mode_outlines(modes: Sequence[syntax.Mode]) -> tuple[OutlineLine, ...]:
    return tuple(
        OutlineLine(
            "in",
            "entered when this succeeds",
            (outline(mode.guard), OutlineLine("do", "", (outline(mode.body),))),
        )
        for mode in modes
    )


def draw(root: OutlineLine, unicode: bool = True, width: int = 80) -> list[str]:
    """The lines of an outline, with the meanings in a second column up to the width."""
    branch, last, down = ("├─ ", "└─ ", "│  ") if unicode else ("|- ", "`- ", "|  ")

    def lines(node: OutlineLine, first: str, rest: str) -> Iterator[tuple[str, str, str]]:
        yield first + node.text, rest + (down if node.parts else ""), node.meaning
        for index, part in enumerate(node.parts):
            is_last = index == len(node.parts) - 1
            yield from lines(
                part, rest + (last if is_last else branch), rest + ("   " if is_last else down)
            )

    drawn = list(lines(root, "", ""))
    left = min(40, max(len(text) for text, _, _ in drawn))
    return [
        f"{text:{left}}  {meaning}".rstrip()
        for first, rest, meaning in drawn
        for text, meaning in _beside(first, rest, meaning, width - left - 2)
    ]


def _beside(first: str, rest: str, meaning: str, room: int) -> Iterator[tuple[str, str]]:
    """The wrapped lines of a meaning, each with its text of the outline on the left."""
    for number, line in enumerate(textwrap.wrap(meaning, max(room, NARROWEST_MEANING)) or [""]):
        yield (rest if number else first), line
