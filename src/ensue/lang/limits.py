"""The limits of a library, each with its name, its value, and what it bounds.

The parser and the reader of files (`ensue.lang.parsing`) check them before work that a text of a
few bytes could make endless. A text past a limit draws a diagnostic with what was given and what is
allowed; its code is `limit-` and the name of the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ensue.lang.diagnostics import Diagnostics
from ensue.lang.source import Span


def _limit(value: int, bounds: str, advice: str) -> int:
    limit: int = field(default=value, metadata={"bounds": bounds, "advice": advice})
    return limit


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one library. The defaults leave room for generated rules."""

    bytes: int = _limit(
        4 * 1024 * 1024, "bytes in the files of a library", "split the library into several"
    )
    words: int = _limit(
        250_000,
        "words and signs in a definition",
        "write `x{n}` for what is repeated, or split the correlation into several",
    )
    definitions: int = _limit(100_000, "definitions in a library", "split the library into several")
    nesting: int = _limit(
        100,
        "levels of brackets and operators inside each other",
        "take brackets away, or write a flat chain",
    )
    levels: int = _limit(
        1_000,
        "levels of event types that inherit from each other",
        "let types inherit from one that is further up",
    )
    derivation: int = _limit(
        1_000,
        "operators and names in a derived attribute once all that it needs is written out",
        "let some of what it needs be data",
    )
    ports: int = _limit(1_000, "ports of a correlation", "split the correlation into several")
    repetition: int = _limit(
        100_000, "repetitions in `x{n}`", "use a smaller count, or count in a rule below this one"
    )
    places: int = _limit(
        1_000_000,
        "places of ports in a branch once every `x{n}` is written out",
        "use smaller counts, or count in a rule below this one",
    )
    rounds: int = _limit(
        1_000_000_000, "rounds of `repeat(n)`, `persist(n)` or `loop(n)`", "use a smaller count"
    )


DEFAULT_LIMITS = Limits()


def report_limit(
    diagnostics: Diagnostics, limits: Limits, name: str, given: int | str, span: Span
) -> None:
    """Report at `span` that `given` is more than the limit called `name` allows."""
    described = next(each for each in fields(limits) if each.name == name).metadata
    shown = f"{given:,}" if isinstance(given, int) else given
    diagnostics.error(
        f"limit-{name}",
        f"there are {shown} {described['bounds']}, and {getattr(limits, name):,} are allowed",
        span,
        described["advice"],
    )
