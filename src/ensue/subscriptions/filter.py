"""A filter: a predicate over one publication, as a value that can be compared, printed and asked.

In comes text, a `Value` of the builder or a syntax tree; what cannot be a predicate is refused with
every finding at once. A filter with temporal or semantic terms asks the history or the ontology
that it is given with the event; without one, such a term is in error and the filter does not match.
Many filters over one event are for `Index`.
"""

from __future__ import annotations

from typing import Any

from ensue.engine.inputs import EventLike, as_event
from ensue.errors import LibraryError, UsageError
from ensue.lang.building.values import Value
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.asking import AskingScope, Ontology, TemporalStore
from ensue.lang.expressions.checking.kinds import check_predicate
from ensue.lang.expressions.evaluation import holds
from ensue.lang.expressions.nesting import report_nesting
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import Expression
from ensue.lang.parsing.hidden_characters import report_hidden_characters
from ensue.lang.source import Source


class Filter:
    """`Filter.parse(text)`, or `Filter(b.attr("price") > 3)` with the builder."""

    __slots__ = ("_expression", "_hash")

    def __init__(self, predicate: Value | Expression) -> None:
        expression: Any = predicate.node if isinstance(predicate, Value) else predicate
        if not isinstance(expression, Expression):
            raise UsageError(
                f"a filter is made of a value of the builder, and `{predicate!r}` is none: "
                "for text there is `Filter.parse`"
            )
        self._expression: Expression = expression
        self._hash: int | None = None
        _check(expression, Source.of(print_expression(expression), "<filter>"))

    @classmethod
    def parse(cls, text: str) -> Filter:
        """The filter that a text says. Raises `LibraryError` with every mistake in it."""
        expression = parse_expression(text, "<filter>")
        _check(expression, Source.of(text, "<filter>"))
        filter_ = cls.__new__(cls)
        filter_._expression = expression
        filter_._hash = None
        return filter_

    @property
    def expression(self) -> Expression:
        return self._expression

    def matches(
        self,
        event: EventLike,
        history: TemporalStore | None = None,
        ontology: Ontology | None = None,
    ) -> bool:
        """Whether a publication passes: the predicate comes out true, and without any error."""
        return holds(self._expression, AskingScope(as_event(event), history, ontology))

    def __str__(self) -> str:
        return print_expression(self._expression)

    def __repr__(self) -> str:
        return f"Filter.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Filter) and other._expression == self._expression

    def __hash__(self) -> int:
        # Brokers look filters up all the time, and a hash visits the whole tree.
        if self._hash is None:
            self._hash = hash(self._expression)
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Filter.parse, (str(self),)


def as_filter(given: Filter | Value | str) -> Filter:
    """A filter from what people have at hand."""
    if isinstance(given, Filter):
        return given
    return Filter.parse(given) if isinstance(given, str) else Filter(given)


def _check(expression: Expression, source: Source) -> None:
    diagnostics = Diagnostics(source)
    report_hidden_characters(source.text, diagnostics)
    if report_nesting(expression, diagnostics):
        # No event type is declared, so that any name may be there and be of any kind.
        check_predicate(expression, lambda _: None, diagnostics)
    if diagnostics.has_errors:
        raise LibraryError([e for e in diagnostics.in_order() if e.severity == "error"])
