"""Data from which derived attributes are worked out to be given values.

In come values for the derived attributes of a type; out come data that are likely to give them:
texts that patterns match with these parts, joined where several are read from one text, and values
that are tried where an expression has no such inverse. Whether they do is to be asked of an event
with these data: whatever comes out, it is an event that exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from ensue.events.types import ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.builtins.patterns import group_number
from ensue.lang.expressions.builtins.plain_patterns import text_with
from ensue.lang.expressions.derived_names import derived_name
from ensue.lang.expressions.evaluation import evaluate
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.tree import Call, Literal, Name
from ensue.lang.expressions.values import FaultError, to_string
from ensue.machine.analyses.events.mentions import mentions_in
from ensue.machine.analyses.events.values import values_of

TRIED = 200
"""The most combinations of values that are tried for one expression."""

_TEXT_OF = frozenset({"BOOL", "DOUBLE", "INT", "STRING", "TIMESTAMP"})
_AS_IT_IS = frozenset({"LOWER", "TRIM", "UPPER"})

Data = dict[Parts, Any]


class Realising:
    """Data for events of one type, whose attributes have these types."""

    def __init__(self, type_name: str, attributes: Mapping[str, ValueType]) -> None:
        self._type_name = type_name
        self._attributes = attributes

    def data_for(self, wanted: Mapping[Parts, Any], plain: Mapping[Parts, Any]) -> Iterator[Data]:
        """Data that may give derived names the wanted values, beside the values of plain names."""
        pieces: dict[Parts, list[Any]] = {}
        for name, value in wanted.items():
            derived = derived_name(name)
            if derived is None or value is None:
                continue
            found = self._inverse(derived.values[self._type_name].expression, value)
            for parts, given in (found or {}).items():
                pieces.setdefault(parts, []).append(given)
        yield {**plain}
        if not pieces:
            return
        for turn in (1, -1):
            yield {**plain, **{parts: _joined(given[::turn]) for parts, given in pieces.items()}}
        both = {n: [plain[n], *g] if plain.get(n) is not None else g for n, g in pieces.items()}
        yield {**plain, **{parts: _joined(given) for parts, given in both.items()}}

    def _inverse(self, x: Expression, value: Any) -> Data | None:
        """Values of names for which an expression may come out as wanted."""
        match x:
            case Name((_,) as parts):
                derived = derived_name(parts)
                own = derived.values.get(self._type_name) if derived is not None else None
                return {parts: value} if own is None else self._inverse(own.expression, value)
            case Call("EXTRACT", (inner, Literal(str() as pattern), *group)):
                asked: Any = group[0].value if group and isinstance(group[0], Literal) else None
                text = _text(value)
                made = None
                if text is not None:
                    made = text_with(pattern, group_number(pattern, asked), text)
                return None if made is None else self._inverse(inner, made)
            case Call(function, (inner, *_)) if function in _TEXT_OF:
                text = _text(value)
                return None if text is None else self._inverse(inner, text)
            case Call(function, (inner,)) if function in _AS_IT_IS:
                return self._inverse(inner, value)
            case _:
                return self._tried(x, value)

    def _tried(self, x: Expression, value: Any) -> Data | None:
        """The first of some values of the names in an expression for which it comes out so."""
        names = list(dict.fromkeys(names_in(x)))
        mentions = mentions_in([x])
        choices: list[Sequence[Any]] = []
        for parts in names:
            derived = derived_name(parts)
            own = derived.values.get(self._type_name) if derived is not None else None
            type_ = self._attributes.get(".".join(parts)) if own is None else own.type
            choices.append(values_of(type_, mentions[parts])[0] if parts in mentions else [None])
        for values in islice(product(*choices), TRIED):
            given = dict(zip(names, values, strict=True))
            outcome = evaluate(x, _Given(given))
            if not outcome.errors and outcome.value == value:
                found: Data = {}
                for parts, each in given.items():
                    found |= self._inverse(Name(parts), each) or {}
                return found
        return None


class _Given:
    """Names with these values."""

    def __init__(self, values: Mapping[Parts, Any]) -> None:
        self._values = values

    def lookup(self, parts: Parts) -> Any:
        value = self._values.get(parts)
        return MISSING if value is None else value


def _text(value: Any) -> str | None:
    try:
        return to_string(value)
    except FaultError:
        return None


def _joined(given: Sequence[Any]) -> Any:
    """Several texts as one that has all of them; of other values the first."""
    texts = [each for each in given if isinstance(each, str)]
    return " ".join(texts) if len(texts) == len(given) else given[0]
