"""Checks the second phase of a filter correlation: cases, pushes, and changes of labels.

The filter has been checked before: its labels and its ports are known. Values are checked by
`predicates`. Out go the ports that the transformer uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ensue.lang.checking.extensions import check_extensions
from ensue.lang.checking.filters import FilterNames
from ensue.lang.checking.ports import Ports, find_port
from ensue.lang.checking.predicates import check_assigned_value
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.source import Span
from ensue.lang.syntax import (
    Assignment,
    Change,
    FilterCorrelation,
    LabelExpression,
    LabelName,
    LabelNot,
    LabelTrue,
    PushNew,
    PushPort,
    Statement,
    TimerPort,
)


@dataclass
class TransformerFacts:
    """The checks of one transformer, and the facts that they share."""

    correlation: FilterCorrelation
    ports: Ports
    filter: FilterNames
    scope: LibraryScope
    used_ports: set[str] = field(default_factory=set)
    used_labels: set[str] = field(default_factory=set)
    pushes: bool = False

    def check(self) -> None:
        for statement in self.correlation.initially:
            self._check_statement(statement, initial=True)
        for case in self.correlation.cases:
            for label in label_names(case.condition):
                self._check_label(label)
            for statement in case.statements:
                self._check_statement(statement, initial=False)
        self._warn_unused_labels()
        if not self.pushes:
            self.scope.warning(
                "never-pushes",
                f"`{self.correlation.name}` never puts anything out",
                self.correlation.span,
                "add a case with a `push`",
            )

    def _check_label(self, label: LabelName) -> None:
        self.used_labels.add(label.name)
        if label.name in self.filter.labels:
            return
        hint = self.scope.hint(label.name, self.filter.labels)
        if not self.filter.labels:
            hint = f"the filter has no labels; put one before a part of it: `{label.name}:(...)`"
        if label.name in self.ports:
            hint = (
                f"`{label.name}` is a port; put a label before its place in the filter, "
                f"`x:{label.name}`, and write `case x:`"
            )
        if label.name.lower() in _ALWAYS:
            hint = "a case that always runs is `case true:`"
        message = f"there is no label `{label.name}`"
        self.scope.error("unknown-label", message, label.span, hint)

    def _warn_unused_labels(self) -> None:
        if not self.used_labels <= self.filter.labels.keys():
            # A label whose name is misspelt in a case seems unused, and was reported already.
            return
        for label, span in self.filter.labels.items():
            if label not in self.used_labels:
                self.scope.warning(
                    "unused-label",
                    f"label `{label}` is used by no case",
                    span,
                    "use it in a case, or remove it",
                )

    def _check_statement(self, statement: Statement, *, initial: bool) -> None:
        if isinstance(statement, Change):
            for label in statement.labels:
                self._check_label(label)
            return
        self.pushes = True
        if isinstance(statement, PushPort):
            self._check_push(statement, initial=initial)
        else:
            self._check_new(statement, initial=initial)
        for port, span, name in check_extensions(
            statement.extensions, self.correlation, self.ports, self.scope
        ):
            self.used_ports.add(port)
            self._warn_unbound(port, span, initial, f"`{name}` will be left out")

    def _check_push(self, push: PushPort, *, initial: bool) -> None:
        span = push.span
        self.used_ports.add(push.port)
        if push.port not in self.ports and push.port in self.scope.types:
            message = f"there is no port `{push.port}`, which is an event type"
            hint = f"build an event of it: `push new {push.port} {{ ... }}`"
            self.scope.error("unknown-port", message, span, hint)
            return
        port = find_port(push.port, span, self.ports, self.scope)
        if isinstance(port, TimerPort):
            self.scope.error(
                "push-of-timer",
                f"`{port.name}` is a timer, and its firing cannot be sent on",
                span,
                f"build an event instead: `push new {self.correlation.output} {{ ... }}`",
            )
        elif port is not None:
            what = f"port `{port.name}` has type `{port.type}`, which"
            output = self.correlation.output
            instead = f"build one from it: `push new {output} {{ ... }}`, or change the output type"
            check_output(what, port.type, output, span, self.scope, instead)
            self._warn_unbound(port.name, span, initial, f"`push {port.name}` sends nothing")

    def _check_new(self, push: PushNew, *, initial: bool) -> None:
        known = self.scope.check_type(push.type, push.type_span)
        if known:
            what = f"`{push.type}`"
            check_output(what, push.type, self.correlation.output, push.type_span, self.scope)
        attributes = self.scope.types.attributes(push.type) if known else {}
        assigned: dict[str, Assignment] = {}
        for each in push.assignments:
            if assigned.setdefault(each.name, each) is not each:
                self.scope.error(
                    "duplicate-assignment",
                    f"attribute `{each.name}` is set twice",
                    each.span,
                    "set it once",
                )
            elif known and each.name not in attributes:
                self._report_no_attribute(push.type, each.name, each.span)
            wanted = attributes.get(each.name)
            checked = check_assigned_value(each.value, wanted, self.ports, self.scope)
            for port, port_span in checked.ports.items():
                self.used_ports.add(port)
                self._warn_unbound(port, port_span, initial, f"`{each.name}` will be null")
        # A misspelt attribute seems unset, and has been reported already.
        if assigned.keys() <= attributes.keys():
            self._warn_not_set(push, [name for name in attributes if name not in assigned])

    def _warn_not_set(self, push: PushNew, missing: Sequence[str]) -> None:
        if not missing:
            return
        *first, last = [f"`{name}`" for name in missing[:3]]
        if len(missing) > 3:
            first, last = [*first, last], f"{len(missing) - 3} more"
        names = f"{', '.join(first)} and {last}" if first else last
        several = len(missing) > 1
        self.scope.warning(
            "attribute-not-set",
            f"{names} of the new `{push.type}` {'are' if several else 'is'} not set and "
            "will be left out",
            push.type_span,
            f"set {'them' if several else 'it'}: "
            f"`{{ {', '.join(f'{name} = ...' for name in missing[:3])} }}`",
        )

    def _report_no_attribute(self, type_name: str, name: str, span: Span) -> None:
        if type_name in self.scope.types.open_types:
            return
        attributes = self.scope.types.attributes(type_name)
        derived = self.scope.types.derived(type_name).get(name)
        if derived is not None:
            self.scope.error(
                "derived-attribute-set",
                f"attribute `{name}` of `{type_name}` is worked out from others, and cannot be set",
                span,
                f"leave it out, and set what it is worked out from: `{derived.value}`",
            )
            return
        hint = self.scope.hint(name, attributes) if attributes else "it has none: use `{}`"
        message = f"event type `{type_name}` has no attribute `{name}`"
        self.scope.error("unknown-attribute", message, span, hint)

    def _warn_unbound(self, port: str, span: Span, initial: bool, effect: str) -> None:
        if initial:
            reason = "no event has been read before the first `case`"
            hint = "put `case true:` before it"
        elif port not in self.filter.ports:
            reason = f"port `{port}` has no place in the filter"
            hint = "only a port that stands in the filter has an event"
        else:
            return
        self.scope.warning("never-bound", f"{reason}, so {effect}", span, hint)


_ALWAYS = frozenset({"else", "default", "otherwise", "always", "true"})


def check_output(
    what: str,
    pushed: str,
    output: str,
    span: Span,
    scope: LibraryScope,
    instead: str | None = None,
) -> None:
    """Report a pushed type that is no subtype of the output type."""
    if not scope.types.may_be_subtype(pushed, output):
        scope.error(
            "wrong-output-type",
            f"{what} is no subtype of the output type `{output}`",
            span,
            instead or f"push `{output}` or a type below it, or change the output type",
        )


def label_names(condition: LabelExpression) -> Iterator[LabelName]:
    """The labels in the condition of a case, from left to right."""
    pending = [condition]
    while pending:
        part = pending.pop()
        if isinstance(part, LabelName):
            yield part
        elif isinstance(part, LabelNot):
            pending.append(part.body)
        elif not isinstance(part, LabelTrue):
            pending.extend(reversed(part.parts))
