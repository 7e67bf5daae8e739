"""The value of a label expression, and the effect of a change of a label.

In come the active labels at a trigger, and a function that tells which labels are aborted; out
comes whether a case runs. Engines and analyses share these rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ensue.lang.syntax import (
    LabelAnd,
    LabelExpression,
    LabelName,
    LabelNot,
    LabelOr,
    LabelTrue,
)


def label_value(
    x: LabelExpression, active: frozenset[str], is_aborted: Callable[[str], bool]
) -> bool | None:
    """The value of a label expression; None, which counts as false, if every label is aborted."""
    match x:
        case LabelTrue():
            return True
        case LabelName(name):
            return None if is_aborted(name) else name in active
        case LabelNot(body):
            value = label_value(body, active, is_aborted)
            return None if value is None else not value
        case LabelAnd(parts) | LabelOr(parts):
            values = [label_value(part, active, is_aborted) for part in parts]
            kept = [value for value in values if value is not None]
            if not kept:
                return None
            return all(kept) if isinstance(x, LabelAnd) else any(kept)


def change_of(
    kind: Literal["abort", "revive", "toggle"], is_aborted: bool
) -> Literal["abort", "revive"]:
    """The effect of a statement on a label: `toggle` aborts or revives it."""
    if kind == "abort" or (kind == "toggle" and not is_aborted):
        return "abort"
    return "revive"
