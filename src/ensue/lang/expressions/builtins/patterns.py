"""MATCHES: regular expressions in the syntax of RE2, which are matched in linear time.

In come a text and a pattern; out goes whether the pattern is found anywhere in the text (`^` and
`$` anchor it). A pattern that RE2 does not read (with backreferences or lookaround), or that would
need too much memory, is refused when a library is checked.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

LONGEST_PATTERN = 1_000
"""The most characters of a pattern."""


def is_found(text: str, pattern: str) -> bool:
    """Whether a pattern matches some part of a text. Raises ValueError for a lone surrogate."""
    # A text with a lone surrogate is no Unicode text, and RE2 reads UTF-8.
    return _compiled(pattern).search(text) is not None


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a pattern; None if nothing is."""
    import re2

    if len(pattern) > LONGEST_PATTERN:
        return f"the pattern has {len(pattern):,} characters, and {LONGEST_PATTERN:,} are allowed"
    try:
        _compiled(pattern)
    except re2.error as error:
        (reason,) = error.args
        return f"RE2 cannot read this pattern: {_shown(reason)}"
    except ValueError:
        return "the pattern has half a character in it (a lone surrogate)"
    return None


def _shown(reason: Any) -> str:
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    # Loaded only where a library has patterns.
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
