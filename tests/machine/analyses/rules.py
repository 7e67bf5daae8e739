"""Short ways to write rules for these tests, and the judge: the reference engine.

`library` gives a filter or an ECL expression in one line the types and ports that all tests share.
`outputs_at` runs one correlation alone over a witness and says at which moments it put out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import ensue
from ensue.engine.run import Run
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation
from ensue.library import Library
from ensue.machine.analyses.comparison import RuleComparison, compare
from ensue.machine.analyses.witness import BEGINNING, Witness

TYPES = """
eventtype Out {};
eventtype Base : Out { attribute long V; attribute string S; attribute short K; };
eventtype A : Base {}; eventtype B : Base {}; eventtype C : Base {}; eventtype D : Base {};
"""
PORTS = "A a, B b, C c, D d"


def rule(name: str, text: str, ports: str = PORTS) -> str:
    """A rule from its short form.

    `ecl ...` is an ECL expression. Anything else is a filter, with what stands behind `=>` as its
    clauses and transformer; without that it puts out at every trigger.
    """
    if text.startswith("ecl "):
        return f"Out ecl {name} ({ports}) {{ {text[4:]} }}"
    filter_, _, body = text.partition("=>")
    clauses, _, cases = body.partition("{")
    if not cases:
        cases = "case true: push new Out {}; }"
    return f"Out correlation {name} ({ports}) {filter_} {clauses} {{ {cases}"


def library(first: str, second: str = "a", ports: str = PORTS) -> Library:
    return ensue.parse(f"{TYPES}\n{rule('One', first, ports)}\n{rule('Two', second, ports)}")


def compared(first: str, second: str, ports: str = PORTS) -> RuleComparison:
    return compare_in(library(first, second, ports))


def compare_in(given: Library) -> RuleComparison:
    one, two = given.correlations
    return compare(one, two, given.checked.types)


def alone(library: Library, correlation: Correlation) -> Run:
    """A run of one correlation of a library, which no other feeds; what it puts out is seen."""
    tree = library.checked.tree
    definitions = (*tree.types, replace(correlation, role=None))
    checked = CheckedLibrary(replace(tree, definitions=definitions), library.checked.types)
    return Run(checked, "reference", 0)


def outputs_at(
    library: Library, correlation: Correlation, witness: Witness
) -> list[frozenset[str]]:
    """For each moment of a witness, the keys under which the reference engine puts out there."""
    run = alone(library, correlation)
    found = []
    for moment in witness.moments:
        by_clock = run.advance(BEGINNING + moment.after)
        if moment.event is None:
            found.append(keys_of(by_clock))
        else:
            assert not by_clock, "a witness has a moment of its own where the clock puts out"
            found.append(keys_of(run.push(moment.event)))
    return found


def keys_of(outputs: list[Event]) -> frozenset[str]:
    """The keys of outputs; without `by`, all have the same."""
    return frozenset(each.extensions.get("partitionkey", "") for each in outputs)


def confirm(library: Library, correlations: Sequence[Correlation], witness: Witness) -> None:
    """The judge sees, under one key, what the witness says of every moment."""
    told = [outputs_at(library, each, witness) for each in correlations]
    # With `by`, the event may be read in silence under a key that never puts anything out.
    silent = "silent" if correlations[0].clauses.by else ""
    keys = {key for one in told for moment in one for key in moment} | {silent}
    said = [each.puts_out for each in witness.moments]
    seen = [[tuple(key in at for at in each) for each in zip(*told, strict=True)] for key in keys]
    assert said in seen


def verify(library: Library, found: RuleComparison) -> None:
    """The judge agrees with every witness, and its last moment tells the two apart."""
    for witness, expected in (
        (found.only_first, (True, False)),
        (found.only_second, (False, True)),
    ):
        if witness is not None:
            confirm(library, library.correlations, witness)
            assert witness.moments[-1].puts_out == expected
