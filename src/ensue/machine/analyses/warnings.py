"""Findings of analyses as warnings, placed in the text of a library.

In come a checked library and its source; out come diagnostics for what is probably not meant: a
rule that can never put anything out, or does so at every event it reads; one that can get stuck;
labels that are never active and cases that never run; two rules that mean the same.

Only certain findings are reported. Each rule has a budget of work, so that checking stays quick; a
rule past its budget is not mentioned, since nothing is known to be wrong with it. All rules
together have a deadline, and each may use half of the time that is left, so that a large rule
leaves time for the small ones. A warning names the rules whose analysis has not ended in time.

A rule that is over after its last possible output is not stuck: it has done what it says. A warning
is due if a rule that could put out for ever can get stuck, or if a filter can get stuck before its
first output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.checking.feeding import outputs_of
from ensue.lang.derived.relating import relates_events
from ensue.lang.diagnostics import Diagnostic, Diagnostics
from ensue.lang.durations import print_duration
from ensue.lang.expressions.evaluation import holds
from ensue.lang.printer import print_labels
from ensue.lang.source import Source
from ensue.lang.syntax import (
    Both,
    Case,
    Clauses,
    Correlation,
    Duration,
    Ecl,
    EclCorrelation,
    Either,
    EventPort,
    Filter,
    FilterCorrelation,
    Group,
    Labelled,
    LabelTrue,
    PortRef,
    Push,
    PushNew,
    PushPort,
    Round,
    Then,
    Timeout,
    Times,
)
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.comparison import compare_behaviours
from ensue.machine.analyses.conditions import (
    conditions_that_never_hold,
    without_needless_having,
)
from ensue.machine.analyses.counting import with_repetitions
from ensue.machine.analyses.deadline import (
    CHECK_SECONDS,
    OutOfTimeError,
    UndecidableError,
    deadline,
    seconds_left,
)
from ensue.machine.analyses.normal_form import normal_form
from ensue.machine.analyses.properties import Answer, Properties, certain_properties
from ensue.machine.analyses.relaxing import relaxed
from ensue.machine.analyses.spans import never_met
from ensue.machine.analyses.witness import Witness

WARNING_WORK = 60_000
"""The budget for one rule or one pair of rules, in transitions that are tested."""

WARNING_RULES = 300
"""The most rules of a library that are analysed."""

WARNING_PAIRS = 300
"""The most pairs of rules that are compared."""

EVENTS_SHOWN = 6


def analysis_warnings(
    library: CheckedLibrary,
    source: Source,
    seconds: float | None = CHECK_SECONDS,
    work: int = WARNING_WORK,
) -> tuple[Diagnostic, ...]:
    """The findings, from top to bottom.

    `seconds` is the time for all of them, `work` the budget for one rule or one pair.
    """
    diagnostics = Diagnostics(source)
    late: dict[str, Correlation] = {}
    with deadline(seconds):
        looked_at = library.correlations[:WARNING_RULES]
        for left, correlation in zip(range(len(looked_at), 0, -1), looked_at, strict=True):
            _warn_spans(correlation, diagnostics)
            if _warn_conditions(correlation, library.types, diagnostics):
                continue
            try:
                with deadline(_share(left)):
                    found = _certain(correlation, library.types, work)
            except OutOfTimeError:
                late[correlation.name] = correlation
            except UndecidableError:
                continue
            else:
                _warn(correlation, found, library.types, diagnostics)
        for first, second in _equivalent_rules(library, late, work):
            diagnostics.warning(
                "equivalent-rules",
                f"`{second.name}` puts out at the same events as `{first.name}`, and the same"
                " types",
                second.span,
                "remove one of them, or compare what they should differ in",
            )
    if late:
        _warn_of_time(list(late.values()), seconds, diagnostics)
    return diagnostics.in_order()


def _warn_spans(correlation: Correlation, diagnostics: Diagnostics) -> None:
    """Warn of timeouts and timers for which the window leaves no time."""
    window = correlation.clauses.within
    told: set[int] = set()
    for each in never_met(correlation):
        if window is None or each.span in told:
            continue
        told.add(each.span)
        if isinstance(each.part, Timeout):
            what = f"`timeout({print_duration(each.part.after)})`"
        else:
            what = f"so many firings of `{each.part.name}`"
        diagnostics.warning(
            "never-within",
            f"{what} can never be met `within {print_duration(window)}`: a match with it lasts"
            f" {print_duration(Duration(each.span))} at least",
            each.part.span,
            f"give the window as much, `within {print_duration(Duration(each.span))}`, or leave it"
            " out",
        )


def _warn_conditions(correlation: Correlation, types: TypeSystem, diagnostics: Diagnostics) -> bool:
    """Warn of conditions that never hold; true if the rule can never put out because of one."""
    silent = False
    for each in conditions_that_never_hold(correlation, types):
        clause = "having" if each.port is None else "where"
        hint = f"port `{each.port}` matches no event" if each.port else "the rule never triggers"
        diagnostics.warning(
            "condition-never-holds",
            f"this `{clause}` never holds: {each.why}",
            each.condition.span,
            f"{hint}: change one of the conditions",
        )
        silent = silent or each.port is None
    return silent


def _certain(correlation: Correlation, types: TypeSystem, work: int) -> Properties:
    """The properties of a rule; of a rule that relates events, only whether it never matches."""
    correlation = with_repetitions(without_needless_having(correlation, types))
    if not relates_events(correlation):
        return certain_properties(correlation, types, work)
    unknown = Answer(None, reason="what depends on several events is not followed")
    more = relaxed(correlation)
    never = more is not None and certain_properties(more, types, work).can_put_out.holds is False
    return Properties(Answer(False) if never else unknown, unknown, unknown)


def _share(rules: int = 2) -> float | None:
    """Half of the time that is left; all of it for the last rule."""
    left = seconds_left()
    return None if left is None else left / min(2, rules)


def _warn_of_time(
    late: Sequence[Correlation], seconds: float | None, diagnostics: Diagnostics
) -> None:
    more = f" and of {len(late) - 1} more" if len(late) > 1 else ""
    diagnostics.warning(
        "analysis-deadline",
        f"the analyses of `{late[0].name}`{more} did not end: {seconds:g} s were allowed for all",
        late[0].span,
        "what they would have found is unknown; `ensue check --deadline` allows more time",
    )


def _warn(
    correlation: Correlation, found: Properties, types: TypeSystem, diagnostics: Diagnostics
) -> None:
    name = correlation.name
    if found.can_put_out.holds is False:
        diagnostics.warning(
            "can-never-fire",
            f"`{name}` can never put anything out",
            correlation.span,
            "no sequence of events leads to an output: look for ports that exclude each other",
        )
        return
    if found.always_puts_out.holds and _asks_something(correlation, types):
        diagnostics.warning(
            "fires-on-everything",
            f"`{name}` puts something out at every event that it reads",
            correlation.span,
            "what it asks for is there with every event: look for parts that imply each other,"
            " for `true`, and for conditions that always hold",
        )
    stuck = _surprise(correlation, found)
    if stuck is not None:
        diagnostics.warning(
            "can-get-stuck",
            f"`{name}` can get to where it never puts anything out again",
            correlation.span,
            f"for example after {in_short(stuck)}",
        )
    if isinstance(correlation, FilterCorrelation):
        for label in found.dead_labels or ():
            diagnostics.warning(
                "label-never-active",
                f"label `{label.label}` is never active when its branch triggers",
                label.span,
            )
        for number in found.dead_cases or ():
            case = correlation.cases[number]
            diagnostics.warning(
                "case-never-runs",
                f"`case {print_labels(case.condition)}` never runs",
                case.span,
                "at no trigger is its label expression true",
            )


def _asks_something(correlation: Correlation, types: TypeSystem) -> bool:
    """Whether a rule asks for more than single events of its ports, which it may mean to send on.

    To say `a | b` of the ports `a` and `b`, or `repeat { notify { a } }`, is to say so.
    """
    if isinstance(correlation, EclCorrelation):
        return not all(map(_sends_on, expressions_in(correlation.body)))
    if correlation.clauses.having is not None or any(map(_joins, correlation.branches)):
        return True
    ports = [each for each in correlation.ports if isinstance(each, EventPort)]
    return any(_always_matches(correlation, port, types) for port in ports)


def _always_matches(correlation: FilterCorrelation, port: EventPort, types: TypeSystem) -> bool:
    """Whether a port has a `where` that holds for every event: a rule that reads all events of its
    type then puts something out where they match the port, and that is always."""
    # What holds for every event holds for one without data, and hardly any condition does.
    if port.where is None or not holds(port.where, Event("", "", port.type, 0, {})):
        return False
    every = replace(port, name=f"every {port.name}", where=None)
    both = replace(
        correlation,
        ports=(every, port),
        branches=(Both((PortRef(every.name), PortRef(port.name))),),
        clauses=Clauses(),
        initially=(),
        cases=(Case(LabelTrue(), (PushNew(correlation.output),)),),
    )
    try:
        found = certain_properties(both, types, WARNING_WORK)
    except UndecidableError:
        return False
    return found.always_puts_out.holds is True


def _sends_on(x: Ecl) -> bool:
    match x:
        case PortRef() | Push():
            return True
        case Round(kind, _, bound):
            return kind == "repeat" and bound is None
        case Group(kind):
            return kind in ("select", "select*", "parallel")
        case _:
            return False


def _joins(x: Filter) -> bool:
    match x:
        case Labelled(_, body):
            return _joins(body)
        case Either(parts):
            return any(_joins(part) for part in parts)
        case Both() | Then() | Times():
            return True
        case PortRef() | Timeout():
            return False


def _surprise(correlation: Correlation, found: Properties) -> Witness | None:
    """The path to a stuck situation that deserves a warning."""
    if not found.stuck.holds:
        return None
    if found.keeps_on:
        return found.stuck.witness
    return None if isinstance(correlation, EclCorrelation) else found.stuck_silently


def in_short(witness: Witness) -> str:
    """A witness in one line: its events, and the clock where the clock decides."""
    shown = []
    for moment in witness.moments[:EVENTS_SHOWN]:
        if moment.event is None:
            shown.append(f"{print_duration(Duration(moment.after))} on the clock")
        else:
            of = f" of {moment.author}" if moment.author is not None else ""
            shown.append(f"{moment.event.type}{of} on `{'`, `'.join(moment.port_names)}`")
    more = len(witness) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _equivalent_rules(
    library: CheckedLibrary, late: dict[str, Correlation], work: int
) -> Iterator[tuple[Correlation, Correlation]]:
    """Pairs of rules with equal outputs at equal moments, as far as they are quickly compared.

    Rules whose comparison did not end in time are added to `late`.
    """
    alike: dict[object, list[Correlation]] = {}
    for correlation in library.correlations[:WARNING_RULES]:
        alike.setdefault(_outside(correlation), []).append(correlation)
    pairs = [pair for group in alike.values() for pair in combinations(group, 2)]
    for one, two in pairs[:WARNING_PAIRS]:
        first, second = with_repetitions(one), with_repetitions(two)
        if relates_events(first) or relates_events(second):
            if normal_form(first) == normal_form(second):
                yield one, two
            continue
        try:
            with deadline(_share()):
                pair = [Behaviour(first), Behaviour(second)]
                found = compare_behaviours(pair, library.types, work, stop_at_one=True)
        except OutOfTimeError:
            late.setdefault(two.name, two)
            continue
        except UndecidableError:
            continue
        if found.absent == {0, 1}:
            yield one, two


def _outside(correlation: Correlation) -> object:
    """The parts in which equivalent rules must agree: ports, keys, and statements."""
    pushed: Sequence[object] = [(each.type, each.or_below) for each in outputs_of(correlation)]
    if isinstance(correlation, FilterCorrelation):
        statements = [s for case in correlation.cases for s in case.statements]
        values = [s for s in statements if isinstance(s, PushPort | PushNew)]
        if any(isinstance(s, PushPort) or s.assignments or s.extensions for s in values):
            pushed = [*values, correlation.clauses.bind]
    return frozenset(correlation.ports), correlation.clauses.by, frozenset(pushed)
