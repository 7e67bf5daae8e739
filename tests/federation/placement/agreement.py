"""Whether a placement puts out what one machine does, and the smallest trial where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ensue.engine.timing.agreeing import Dissent
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.federation.placement import Simulation, SiteRun, place
from ensue.federation.placement.snapshots import saved

from .random_trials import Trial


@dataclass(frozen=True)
class Way:
    """How the simulated network behaves; with `restarts`, sites begin again in the middle."""

    engine: str = "reference"
    delay: int = 0
    beat: int = 1
    wire: bool = False
    restarts: bool = False

    @classmethod
    def drawn(cls, seed: int) -> Way:
        random = Random(seed)
        engine = random.choice(["reference", "step", "step"])
        return cls(
            engine,
            random.choice([0, 0, 3, 20]),
            random.choice([1, 1, 7, 1000]),
            random.random() < 0.3,
            engine == "step" and random.random() < 0.2,
        )


def written(run: SiteRun) -> bytes:
    return saved.write(saved.Attached("", run.saved(), None, [], [], 0, 0, Dissent()))


class Restarting(Simulation):
    """Before every step some sites are saved, written, read and put back."""

    def _deliver(self, everything: bool = False) -> bool:
        draw = Random(self._now)
        for name, run in self.sites.items():
            if draw.random() < 0.3:
                again = saved.read(written(run))
                self.sites[name] = SiteRun.restored(self.placement, name, again.site)
        return super()._deliver(everything)


@dataclass(frozen=True)
class Difference:
    trial: Trial
    expected: list[str]
    given: list[str]

    def __str__(self) -> str:
        return "\n".join([str(self.trial), "one machine:", *self.expected, "placed:", *self.given])


def as_lines(outputs: list[Event]) -> list[str]:
    return [encode(each).decode() for each in outputs]


def of_one_machine(trial: Trial) -> list[str]:
    run = trial.library.start("reference")
    outputs = [out for _, event in trial.events for out in run.push(event)]
    return as_lines(outputs + run.finish())


def simulated(trial: Trial, way: Way) -> tuple[list[str], Simulation]:
    placement = place(trial.library.checked, trial.sites)
    simulation = (Restarting if way.restarts else Simulation)(
        placement,
        engine=way.engine,
        delay=way.delay,
        beat=way.beat,
        wire=way.wire,
        seed=trial.seed,
    )
    return as_lines(simulation.run(trial.events)), simulation


def difference(trial: Trial, way: Way) -> Difference | None:
    expected = of_one_machine(trial)
    try:
        given, _ = simulated(trial, way)
    except AssertionError as error:
        given = [f"assertion: {error}"]
    return None if expected == given else Difference(trial, expected, given)


def smallest(found: Difference, way: Way) -> Difference:
    """The difference with as many events left out as possible."""
    size = max(1, len(found.trial.events) // 2)
    while size:
        start = 0
        while start < len(found.trial.events):
            again = difference(found.trial.without(start, start + size), way)
            if again is None:
                start += size
            else:
                found = again
        size //= 2
    return found
