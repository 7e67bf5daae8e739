"""A whole library as the rules that run: parameters with their values, and a rule for each use.

In comes the tree of a text, and values from outside; out go the event types and the rules that run,
in the order of the text, and the templates, which run nowhere and are checked all the same. What is
wrong in a use only, though the text it uses is right by itself, is reported at both places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ensue.errors import UsageError
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.derived.parts import count_places, parts_of
from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.expanding.parameters import (
    Filling,
    GivenValues,
    Values,
    declared_values,
    given_values,
)
from ensue.lang.expanding.uses import Uses
from ensue.lang.expressions.names import names_in
from ensue.lang.limits import DEFAULT_LIMITS, report_limit
from ensue.lang.syntax import (
    Correlation,
    EclCorrelation,
    EventTypeDeclaration,
    FilterCorrelation,
    Import,
    LibraryTree,
    Parameter,
    Round,
    Timeout,
    TimerPort,
    Times,
    Use,
)


@dataclass
class CheckedUse:
    """The rule of a use, and what was found where the values were put in."""

    use: Use
    rule: Correlation
    found: Diagnostics


@dataclass
class Expansion:
    """`tree` runs. `written` is what the library says of itself: without imports, which are there.

    `refused` is what is wrong with the values from outside.
    """

    tree: LibraryTree
    written: LibraryTree
    templates: tuple[Correlation, ...] = ()
    uses: Mapping[str, CheckedUse] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    refused: UsageError | None = None


def expanded(
    tree: LibraryTree,
    types: Sequence[EventTypeDeclaration],
    given: GivenValues,
    scope: LibraryScope,
) -> Expansion:
    """The rules of a library; mistakes are reported. `types` has its types with values put in."""
    _check_imports(tree, scope)
    if not given and all(
        isinstance(each, EventTypeDeclaration) or _is_plain(each) for each in tree.definitions
    ):
        # Most libraries; they may have thousands of rules. What names a parameter is looked for.
        return _Expanding(tree, types, {}, scope).only_rules()
    return _Expanding(tree, types, given, scope).everything()


def _is_plain(definition: object) -> bool:
    return not isinstance(definition, Import | Parameter | Use) and (
        getattr(definition, "role", None) != "template"
    )


def _names_parameters(rule: Correlation) -> bool:
    """Whether a name stands where only a parameter can, without a look into predicates."""
    lengths = [port.period for port in rule.ports if isinstance(port, TimerPort)]
    if rule.clauses.within is not None:
        lengths.append(rule.clauses.within)
    parts = (
        expressions_in(rule.body) if isinstance(rule, EclCorrelation) else parts_of(rule.branches)
    )
    for part in parts:
        if isinstance(part, Timeout):
            lengths.append(part.after)
        elif isinstance(part, Times | Round) and part.parameter is not None:
            return True
    return any(each.parameter is not None for each in lengths)


def _check_imports(tree: LibraryTree, scope: LibraryScope) -> None:
    source = scope.diagnostics.source
    begun: set[str] = set()
    for each in tree.definitions:
        span = each.span
        file = source.position(span.start).file
        if not isinstance(each, Import):
            begun.add(file)
        elif not source.has_imports:
            scope.error(
                "import-not-found",
                f"`{each.path}` cannot be imported: this text is no file, and stands in no folder",
                span,
                "load the file, or write the definitions here",
            )
        elif (file, each.path) in source.lost:
            scope.error("import-not-found", f"there is no file `{each.path}` to import", span)
        elif file in begun:
            scope.error(
                "late-import",
                "an import stands behind a definition",
                span,
                "imports are the first thing in a file",
            )


class _Expanding:
    def __init__(
        self,
        tree: LibraryTree,
        types: Sequence[EventTypeDeclaration],
        given: GivenValues,
        scope: LibraryScope,
    ) -> None:
        self.tree = tree
        self.types = iter(types)
        self.scope = scope
        self.given = given
        self.parameters = declared_values(tree.parameters, scope)
        self.filling = Filling(self.parameters, scope, set())

    def only_rules(self) -> Expansion:
        """For a library without anything else: what names a parameter is a mistake."""
        for each in self.tree.correlations:
            if _names_parameters(each):
                self.filling.with_values(each, {})
        return Expansion(self.tree, self.tree)

    def everything(self) -> Expansion:
        refused = None
        values: Values = {name: each.value for name, each in self.parameters.items()}
        try:
            values = given_values(self.parameters, self.given)
        except UsageError as error:
            refused = error
        rules = {each.name: each for each in self.tree.correlations}
        named = {each.name: each for each in self.tree.definitions if isinstance(each, Use)}
        uses = Uses(rules, named, self.parameters, self.scope)
        templates, checked, running = [], dict[str, CheckedUse](), list[Correlation]()
        definitions: list[EventTypeDeclaration | Correlation] = []
        for each in self.tree.definitions:
            if isinstance(each, EventTypeDeclaration):
                filled = next(self.types)
                definitions.append(filled)
                self._note_used(each, filled)
            elif isinstance(each, Use):
                made = uses.rule_of(each)
                if made is not None:
                    inner = Diagnostics(self.scope.diagnostics.source)
                    rule = self._filled(made.rule, {**values, **made.settings}, inner)
                    checked[each.name] = CheckedUse(each, rule, inner)
                    running.append(rule)
                    definitions.append(rule)
            elif not isinstance(each, Import | Parameter):
                rule = self._filled(each, values, self.scope.diagnostics)
                if each.role == "template":
                    templates.append(rule)
                else:
                    running.append(rule)
                    definitions.append(rule)
        self._warn_unused()
        written = LibraryTree(
            tuple(each for each in self.tree.definitions if not isinstance(each, Import))
        )
        with_values = tuple(
            replace(each, value=values[name]) for name, each in self.parameters.items()
        )
        return Expansion(
            LibraryTree(tuple(definitions)),
            written,
            tuple(templates),
            checked,
            with_values,
            refused,
        )

    def _filled(self, rule: Correlation, values: Values, found: Diagnostics) -> Correlation:
        filling = replace(self.filling, scope=replace(self.scope, diagnostics=found))
        filled = filling.with_values(rule, values)
        if isinstance(filled, FilterCorrelation) and _names_parameters(rule):
            for branch in filled.branches:
                places = count_places(branch)
                if places > DEFAULT_LIMITS.places:
                    report_limit(found, DEFAULT_LIMITS, "places", places, branch.span)
        return filled

    def _note_used(self, written: EventTypeDeclaration, filled: EventTypeDeclaration) -> None:
        """Parameters that derived attributes mention are used."""
        for before, after in zip(written.attributes, filled.attributes, strict=True):
            if before.value != after.value and before.value is not None:
                names = {parts[0] for parts in names_in(before.value)}
                self.filling.used.update(names & self.parameters.keys())

    def _warn_unused(self) -> None:
        # A file of parameters may be imported for some of them.
        if len(self.scope.diagnostics.source.files) > 1:
            return
        for name, each in self.parameters.items():
            if name not in self.filling.used:
                self.scope.warning(
                    "unused-parameter",
                    f"parameter `{name}` is not used",
                    each.span,
                    "use it in a rule, or remove it",
                )


def report_of_uses(
    uses: Mapping[str, CheckedUse], alone: Sequence[Diagnostic], scope: LibraryScope
) -> None:
    """Report what was found in uses, unless it was found in the text that they use as well."""
    known = {(each.code, each.file, each.line, each.column) for each in alone}
    for each in uses.values():
        for found in each.found.found:
            if (found.code, found.file, found.line, found.column) not in known:
                scope.diagnostics.in_use(found, each.use.name, each.use.rule, each.use.span)
