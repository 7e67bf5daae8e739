"""The fixed parts of a LIKE pattern: prefix, suffix and the longest substring.

A pattern without wildcards is equality; `abc%`, `%abc` and `%abc%` are prefix, suffix and
substring. Any other pattern still has literal parts; the longest of them, or the one at an end, is
a witness: a text without it cannot match.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_ELEMENT = re.compile(r"\\[%_]|.", re.DOTALL)
ANY, ONE = object(), object()


class PatternShape(NamedTuple):
    """The fixed parts of a pattern; `exact` is the whole text if there are no wildcards.

    `is_prefix`, `is_suffix` and `is_inner` say that this part is the whole pattern.
    """

    exact: str | None
    prefix: str
    suffix: str
    inner: str
    is_prefix: bool
    is_suffix: bool
    is_inner: bool


@lru_cache(maxsize=4096)
def shape_of(pattern: str) -> PatternShape:
    elements = elements_of(pattern)
    stretches = [""]
    for each in elements:
        if isinstance(each, str):
            stretches[-1] += each
        else:
            stretches.append("")
    if len(stretches) == 1:
        return PatternShape(stretches[0], "", "", "", False, False, False)
    only_any = ONE not in elements
    wildcards = len(elements) - sum(map(len, stretches))
    return PatternShape(
        None,
        stretches[0],
        stretches[-1],
        max(stretches, key=len),
        is_prefix=only_any and wildcards == 1 and elements[-1] is ANY,
        is_suffix=only_any and wildcards == 1 and elements[0] is ANY,
        is_inner=only_any and wildcards == 2 and elements[0] is ANY and elements[-1] is ANY,
    )


def elements_of(pattern: str) -> list[object]:
    """The elements of a pattern: characters, `ANY` for `%` and `ONE` for `_`."""
    wild = {"%": ANY, "_": ONE}
    return [wild.get(each, each[-1]) for each in _ELEMENT.findall(pattern)]
