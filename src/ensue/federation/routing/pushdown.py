"""What of a filter a service can apply: more may pass there than the filter allows, never less.

Of a conjunction, the operands stay that ask only for the content of the event; operands that only a
gateway can answer (the route of an event, a history, an ontology) are left out. A filter of another
shape that has such a term lets everything pass: `brokers.weakening` says why nothing cleverer is
right, and for that reason several filters are also not joined into one. The filter itself is
applied by gateways, whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.brokers.weakening import CONCEPTS, TEMPORAL, weakened
from ensue.federation.messages.attributes import KIND, ORIGIN, PATH
from ensue.lang.expressions.nesting import nodes_in
from ensue.lang.expressions.tree import Exists, Expression, Name
from ensue.subscriptions import Filter

_ROUTE = frozenset({KIND, ORIGIN, PATH})


def content_of(wanted: Sequence[Filter]) -> list[Filter]:
    """Filters over content alone; what one of the given ones matches, one of these does."""
    return list(dict.fromkeys(Filter(weakened(each.expression, _is_beyond)) for each in wanted))


def _is_beyond(expression: Expression) -> bool:
    """Whether an expression asks for something that a service cannot know."""
    for node in nodes_in(expression):
        if isinstance(node, (*TEMPORAL, *CONCEPTS)):
            return True
        name = node.name if isinstance(node, Exists) else node
        if isinstance(name, Name) and name.parts[0] in _ROUTE:
            return True
    return False
