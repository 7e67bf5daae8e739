"""Dependencies of outputs: on the ports of a correlation, and on other correlations of a library.

A port decides *when* there is an output if the correlation, without the events of this port, would
put out at other moments: the correlation is compared with itself without the port, and a sequence
that tells them apart is the proof. Whether a port fills in *what* is put out follows from the
statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.derived.parts import values_in
from ensue.lang.expressions.names import names_in
from ensue.lang.syntax import Correlation, EventPort, FilterCorrelation, PushPort
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.comparison import compare_behaviours
from ensue.machine.analyses.deadline import ANALYSIS_SECONDS, UndecidableError, deadline
from ensue.machine.analyses.witness import Witness

DEPENDENCY_WORK = 2_000_000
"""The budget for one port, in transitions that are tested."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """What a port decides. `decides_when` is None where that is unknown.

    The witness is a sequence at whose end there is an output only with the port, or only without.
    """

    port: str
    decides_when: bool | None
    fills_in: bool
    witness: Witness | None = None
    reason: str | None = None

    @property
    def matters(self) -> bool | None:
        return True if self.fills_in else self.decides_when


def dependencies(
    correlation: Correlation,
    types: TypeSystem,
    work: int = DEPENDENCY_WORK,
    seconds: float | None = ANALYSIS_SECONDS,
) -> tuple[Dependency, ...]:
    """What each port of a correlation decides, in the order of the ports.

    The `work` is for each port, the `seconds` are for all ports together.
    """
    filled_in = set(_ports_in_outputs(correlation))
    with deadline(seconds):
        return tuple(
            _dependency(correlation, port.name, port.name in filled_in, types, work)
            for port in correlation.ports
        )


def _dependency(
    correlation: Correlation, port: str, fills_in: bool, types: TypeSystem, work: int
) -> Dependency:
    try:
        pair = [Behaviour(correlation), Behaviour(correlation, without=frozenset({port}))]
        found = compare_behaviours(pair, types, work, stop_at_one=True)
    except UndecidableError as error:
        return Dependency(port, None, fills_in, reason=str(error))
    if found.seen:
        witness = min(found.seen.values(), key=len)
        return Dependency(port, True, fills_in, witness)
    if found.absent == {0, 1}:
        return Dependency(port, False, fills_in)
    return Dependency(port, None, fills_in, reason="; ".join(dict.fromkeys(found.reasons)))


def _ports_in_outputs(correlation: Correlation) -> Iterator[str]:
    if not isinstance(correlation, FilterCorrelation):
        return
    statements = [each for case in correlation.cases for each in case.statements]
    yield from (each.port for each in statements if isinstance(each, PushPort))
    yield from (parts[0] for value in values_in(statements) for parts in names_in(value))


# --- over a library -----------------------------------------------------------------------------


def feeding_text(library: CheckedLibrary) -> str:
    """Which correlations feed which, one line each."""
    lines = []
    for correlation in library.correlations:
        fed = library.feeds.get(correlation.name, ())
        inputs = ", ".join(_input_types(correlation)) or "timers only"
        readers = f" -> {', '.join(fed)}" if fed else ""
        lines.append(f"{inputs} -> {correlation.name}{readers}")
    return "\n".join(lines)


def feeding_mermaid(library: CheckedLibrary) -> str:
    """A Mermaid flow chart of correlations and of the event types that come from outside."""
    lines = ["flowchart LR"]
    for correlation in library.correlations:
        name = correlation.name
        lines.append(f"    {name}[{name}]")
        lines += [f"    in_{each}([{each}]) --> {name}" for each in _input_types(correlation)]
        lines += [f"    {name} --> {reader}" for reader in library.feeds.get(name, ())]
    return "\n".join(lines)


def _input_types(correlation: Correlation) -> list[str]:
    ports = [port.type for port in correlation.ports if isinstance(port, EventPort)]
    return list(dict.fromkeys(ports))
