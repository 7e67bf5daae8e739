"""What it takes to know what a rule means: comparing two of them, and the findings of `check`.

Each pair is one that people write: the same in both languages, other windows, a label that is
aborted, accumulations of many ports. Loading is off the clock. The last figures say how much
smaller a whole table could be made, for the rules of the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from ensue.lang.checked import CheckedLibrary
from ensue.library import Library, parse
from ensue.machine.analyses.comparison import RuleComparison, compare
from ensue.machine.analyses.properties import properties
from ensue.machine.dense import dense_table
from ensue.machine.passes.minimising import minimise
from ensue.machine.plan import plan
from ensue_bench.effort import Effort
from ensue_bench.report import Figure
from ensue_bench.timing import Work, seconds

ALWAYS = "{ case true: push new Out {}; }"
WIDE = 40


def measure(effort: Effort) -> Iterator[Figure]:
    pairs = {name: _library(first, second) for name, (first, second) in _pairs(effort).items()}
    for name, library in pairs.items():
        taken = seconds(Work(partial(_compare, library)), effort.times(5))
        relation = _compare(library, None).relation
        yield Figure(
            f"compare: {name} ({relation})", "ms", tuple(each * 1e3 for each in taken), "lower"
        )
    library = pairs["`a ; b ; c`, in both languages"]
    taken = seconds(Work(partial(_properties, library.checked)), effort.times(5))
    yield Figure(
        "check: what `a ; b ; c` can do", "ms", tuple(each * 1e3 for each in taken), "lower"
    )
    before, after = _table_sizes(pairs.values())
    yield Figure("states of the whole tables of these rules", "states", (float(before),), "lower")
    yield Figure("the same tables, minimised", "states", (float(after),), "lower")


def _pairs(effort: Effort) -> dict[str, tuple[str, str]]:
    wide = effort.size(WIDE, 6)
    ports = [f"p{number}" for number in range(wide)]
    toggled = "l:p0 ; p1 || k:p2 { case k: toggle(l); case !k: push new Out {}; }"
    return {
        "`a ; b ; c`, in both languages": (
            f"p0 ; p1 ; p2 {ALWAYS}",
            "{ repeat { notify { do { sequential { p0, p1, p2 } } unless { false } } } }",
        ),
        "`a ; b ; c` and `a + b + c`": (f"p0 ; p1 ; p2 {ALWAYS}", f"p0 + p1 + p2 {ALWAYS}"),
        "four ports, within 10 s and 20 s": (
            f"p0 + p1 + p2 + p3 within 10 s {ALWAYS}",
            f"p0 + p1 + p2 + p3 within 20 s {ALWAYS}",
        ),
        "a label aborted left of `;`": (toggled, f"p0 ; p1 {ALWAYS}"),
        "`a{1000}` and `a{999}`": (f"p0{{1000}} {ALWAYS}", f"p0{{999}} {ALWAYS}"),
        f"{wide} accumulated ports, and one fewer": (
            f"{' + '.join(ports)} {ALWAYS}",
            f"{' + '.join(ports[1:])} {ALWAYS}",
        ),
        f"{wide} accumulated ports, once and again and again": (
            f"{' + '.join(ports)} {ALWAYS}",
            f"{{ notify {{ accumulate {{ {', '.join(ports)} }} }} }}",
        ),
    }


def _library(first: str, second: str) -> Library:
    types = "".join(f"eventtype T{number} {{}};" for number in range(WIDE))
    ports = ", ".join(f"T{number} p{number}" for number in range(WIDE))
    rules = "".join(
        f"Out {'ecl' if body.startswith('{') else 'correlation'} {name} ({ports}) {body}\n"
        for name, body in (("One", first), ("Two", second))
    )
    return parse(f"eventtype Out {{}};{types}\n{rules}")


def _compare(library: Library, _: object) -> RuleComparison:
    one, two = library.correlations
    return compare(one, two, library.checked.types)


def _properties(library: CheckedLibrary, _: object) -> object:
    return properties(library.correlations[0], library.types)


def _table_sizes(libraries: Iterable[Library]) -> tuple[int, int]:
    """All states of the tables that can be written down whole, before and after minimising."""
    before = after = 0
    for library in libraries:
        for correlation in library.correlations:
            planned = plan(correlation)
            if planned.form == "table" and planned.machine is not None:
                letters = [frozenset({number}) for number in range(len(planned.machine.atoms))]
                table = dense_table(planned.machine, letters, 2_000)
                if table is not None:
                    before += len(table.rows)
                    after += len(minimise(table).rows)
    return before, after
