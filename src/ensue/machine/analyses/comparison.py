"""The comparison of two correlations: sequences at whose end only one of them puts something out.

In come two correlations of one library; out come their relation and a shortest witness for each
side. They are compared by the finite sequences of moments (events, and times that the clock
reaches) at whose last moment they put something out; the content of outputs is left aside, but for
what `with` sets: rules that say other things there are different, without a witness. Both
read each event, each on those of its ports that the event matches: ports with equal declarations
match the same events, and a port that only one of the two has is read by that one alone. With the
same `by`, both run under one key; with other keys, each runs under a key of its own.

Rules that differ only in how they are written need no search (`normal_form`). A relation that
cannot be found exactly is `undecided`, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ensue.events.types import TypeSystem
from ensue.lang.expressions.evaluation import holds
from ensue.lang.printer import print_key
from ensue.lang.syntax import (
    Correlation,
    FilterCorrelation,
    LabelExpression,
    PushNew,
    PushPort,
    Statement,
)
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.counting import with_repetitions
from ensue.machine.analyses.deadline import (
    ANALYSIS_SECONDS,
    OutOfTimeError,
    UndecidableError,
    deadline,
)
from ensue.machine.analyses.events.alphabet import Alphabet, Symbol, alphabets, keys_of
from ensue.machine.analyses.normal_form import normal_form
from ensue.machine.analyses.search.exploration import Edge, Exploration
from ensue.machine.analyses.search.guided import GuidedSearch
from ensue.machine.analyses.witness import Witness, has_times, path_to, witness_of

COMPARISON_WORK = 4_000_000
"""The budget of a comparison, in transitions that are tested."""

TIMELESS_WAYS = 20
"""After so many paths that no times allow, the search by order gives way to one by times."""

Relation = Literal["equivalent", "contained", "contains", "different", "undecided"]


@dataclass(frozen=True, slots=True)
class RuleComparison:
    """The relation of a first rule to a second.

    `only_first` is a shortest sequence at whose end only the first rule puts something out, if
    there is one; `only_second` is that of the second rule. `reason` says why a relation is
    undecided, or different without a witness, `notes` what was left aside.
    """

    relation: Relation
    only_first: Witness | None = None
    only_second: Witness | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()
    is_out_of_time: bool = False

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        return tuple(each for each in (self.only_first, self.only_second) if each is not None)


def compare(
    first: Correlation,
    second: Correlation,
    types: TypeSystem,
    work: int = COMPARISON_WORK,
    seconds: float | None = ANALYSIS_SECONDS,
) -> RuleComparison:
    """The relation of two correlations; undecided past `work` transitions or `seconds`."""
    notes = tuple(_notes(first, second))
    first, second = with_repetitions(first), with_repetitions(second)
    try:
        with deadline(seconds):
            if keys_of(first) == keys_of(second) and normal_form(first) == normal_form(second):
                return _beside_compared(first, second, RuleComparison("equivalent", notes=notes))
            behaviours = [Behaviour(first), Behaviour(second)]
            found = compare_behaviours(behaviours, types, work)
    except UndecidableError as error:
        is_out_of_time = isinstance(error, OutOfTimeError)
        return RuleComparison(
            "undecided", reason=str(error), notes=notes, is_out_of_time=is_out_of_time
        )
    return _beside_compared(first, second, _answer(found, notes))


def _beside_compared(
    first: Correlation, second: Correlation, found: RuleComparison
) -> RuleComparison:
    """A comparison of moments, and of what `with` sets at them."""
    if found.relation != "equivalent":
        return found
    one, other = _extensions_by_case(first), _extensions_by_case(second)
    is_same = one == other
    if {case for case, _ in one} != {case for case, _ in other}:
        is_same = {given for _, given in one} == {given for _, given in other}
    if is_same:
        return found
    reason = (
        f"`{first.name}` and `{second.name}` put something out at the same moments, and `with` sets"
        " other extensions"
    )
    return replace(found, relation="different", reason=reason)


def _extensions_by_case(correlation: Correlation) -> set[tuple[object, object]]:
    """What each push sets by `with`, under the condition of its case."""
    if not isinstance(correlation, FilterCorrelation):
        return {(None, frozenset[object]())}
    blocks: list[tuple[LabelExpression | None, Sequence[Statement]]]
    blocks = [(None, correlation.initially)]
    blocks += [(case.condition, case.statements) for case in correlation.cases]
    return {
        (condition, frozenset(each.extensions))
        for condition, statements in blocks
        for each in statements
        if isinstance(each, PushPort | PushNew)
    }


@dataclass
class Differences:
    """Witnesses of outputs that only one rule has, by its number, and differences proven absent."""

    seen: dict[int, Witness] = field(default_factory=dict)
    absent: set[int] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def is_settled(self, which: int) -> bool:
        return which in self.seen or which in self.absent


def compare_behaviours(
    behaviours: Sequence[Behaviour], types: TypeSystem, work: int, *, stop_at_one: bool = False
) -> Differences:
    """Search for the differences of both sides, under every kind of key."""
    whole = Differences(absent={0, 1})
    for alphabet in alphabets(behaviours, types):
        part = _differences(behaviours, alphabet, work, stop_at_one=stop_at_one)
        for which, witness in part.seen.items():
            known = whole.seen.get(which)
            if known is None or len(witness) < len(known):
                whole.seen[which] = witness
        whole.absent &= part.absent
        whole.reasons += part.reasons
        whole.notes += part.notes
        if stop_at_one and whole.seen:
            break
    return whole


def _differences(
    behaviours: Sequence[Behaviour], alphabet: Alphabet, work: int, *, stop_at_one: bool
) -> Differences:
    found = _search(behaviours, alphabet.symbols, work, stop_at_one=stop_at_one)
    if alphabet.is_exact:
        return found
    # A difference that was not seen over `symbols` is absent only if it is so over `possible`.
    missing = {which for which in (0, 1) if which not in found.seen}
    found.absent = set()
    if missing and not (stop_at_one and found.seen):
        wider = _search(behaviours, alphabet.possible, work, stop_at_one=False)
        found.absent = wider.absent & missing
        found.reasons += wider.reasons
        found.notes += wider.notes
        if missing - found.absent:
            found.reasons += [f"as far as predicates can be told apart: {g}" for g in alphabet.gaps]
    return found


def _search(
    behaviours: Sequence[Behaviour], symbols: Sequence[Symbol], work: int, *, stop_at_one: bool
) -> Differences:
    """Search by the order of moments first, and by their times for the sides left open."""
    found = Differences()
    search = GuidedSearch(behaviours, symbols, work)
    timeless: Counter[int] = Counter()
    longer: dict[int, Witness] = {}
    told: set[int] = set()
    for edge in search.differences():
        which = 0 if edge.puts_out[0] else 1
        if not has_times(edge):
            timeless[which] += 1
            if timeless[which] == TIMELESS_WAYS:
                search.settle(which)
            continue
        search.settle(which)
        if timeless[which]:
            # This path may be too long: a shorter one may share a node with a path without times.
            witness = _certain(behaviours, edge, found)
            if witness is not None:
                longer[which] = witness
            continue
        told.add(which)
        witness = _certain(behaviours, edge, found)
        if witness is not None:
            found.seen[which] = witness
            if stop_at_one:
                return found
    if search.complete:
        found.absent = {0, 1} - told - timeless.keys()
    left = {0, 1} - told - found.absent
    if left and any(each.window for each in behaviours):
        search_by_times(behaviours, symbols, work, left, found)
    elif left:
        found.reasons.append(_budget_reason(work, search.depth))
    for which in left & longer.keys() - found.seen.keys() - found.absent:
        found.seen[which] = longer[which]
        found.notes.append("a shorter sequence than the one that is shown may tell them apart")
    return found


def search_by_times(
    behaviours: Sequence[Behaviour],
    symbols: Sequence[Symbol],
    work: int,
    sides: set[int],
    found: Differences,
) -> None:
    """Settle sides by a search with all that is known of times, within the budget."""
    edges: dict[int, Edge] = {}
    exploration = Exploration(behaviours, symbols, work)
    for edge in exploration.edges():
        first, second = edge.puts_out
        which = 0 if first else 1
        if first != second and which in sides:
            edges.setdefault(which, edge)
            if edges.keys() == sides:
                break
    else:
        if exploration.complete:
            found.absent |= sides - edges.keys()
        else:
            found.reasons.append(_budget_reason(work, exploration.depth))
    for which, edge in edges.items():
        witness = _certain(behaviours, edge, found)
        if witness is not None:
            found.seen[which] = witness


def _certain(behaviours: Sequence[Behaviour], edge: Edge, found: Differences) -> Witness | None:
    """The witness of an edge, if its events exist and predicates leave no doubt."""
    if not all(step.symbol is None or step.symbol.event for step in path_to(edge)):
        return None
    witness = real_witness(behaviours, edge)
    if witness is None:
        found.reasons.append("a difference was seen that may need times or ids of its own")
    return witness


def _budget_reason(work: int, depth: int) -> str:
    return (
        f"more than {work:,} transitions would have to be looked at; what is not shown"
        f" here would take more than {counted_moments(depth)}"
    )


def counted_moments(count: int) -> str:
    return "1 moment" if count == 1 else f"{count} moments"


def real_witness(behaviours: Sequence[Behaviour], edge: Edge) -> Witness | None:
    """The witness of an edge, if it is certain; None otherwise.

    It is certain if times for it exist, and if predicates over `time` and `id` come out for its
    events as they did for the events of the symbols.
    """
    predicates = {each for b in behaviours for each in b.predicates_and_wheres}
    symbols = [step.symbol for step in path_to(edge) if step.symbol is not None]
    witness = witness_of(edge)
    if witness is None:
        return None
    certain = all(
        symbol.event is not None and holds(each, event) == holds(each, symbol.event)
        for symbol, event in zip(symbols, witness.events, strict=True)
        for each in predicates
    )
    return witness if certain else None


def _answer(found: Differences, notes: tuple[str, ...]) -> RuleComparison:
    relation: Relation = "undecided"
    if all(found.is_settled(which) for which in (0, 1)):
        relations: dict[tuple[bool, bool], Relation] = {
            (False, False): "equivalent",
            (True, False): "contains",
            (False, True): "contained",
            (True, True): "different",
        }
        relation = relations[0 in found.seen, 1 in found.seen]
    reason = None
    if relation == "undecided":
        reason = "; ".join(dict.fromkeys(found.reasons))
    told = (*notes, *dict.fromkeys(found.notes))
    return RuleComparison(relation, found.seen.get(0), found.seen.get(1), reason, told)


def _notes(first: Correlation, second: Correlation) -> Iterable[str]:
    one, other = keys_of(first), keys_of(second)
    if one != other:
        keys = [", ".join(print_key(key) for key in each) or "no key" for each in (one, other)]
        yield f"their keys differ: `{first.name}` is by {keys[0]}, `{second.name}` by {keys[1]}"
    declared = [{port.name: port for port in each.ports} for each in (first, second)]
    for name in sorted(declared[0].keys() & declared[1].keys()):
        if declared[0][name] != declared[1][name]:
            yield f"port `{name}` is not declared alike in both; each reads by its own declaration"
