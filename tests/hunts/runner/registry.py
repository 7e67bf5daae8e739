"""The hunts that there are: the modules of some folders, read without importing any of them.

In comes a folder of `tests/hunts`; out go its hunts, each with its name and its aim. What a hunt
needs (Spark, a broker) is imported when it runs.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDERS = ("computing", "servers", "spark")
HERE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Hunt:
    """One hunt; its module is imported when it is asked for a round."""

    name: str
    aim: str
    module: str

    def play(self, seed: int, faults: Sequence[str] = ()) -> Mapping[str, int]:
        """The round of a seed, with some faults or with all of them."""
        module: Any = import_module(self.module)
        if self.faults:
            found: Mapping[str, int] = module.hunt(seed, tuple(faults) or self.faults)
        else:
            found = module.hunt(seed)
        return found

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(getattr(import_module(self.module), "FAULTS", ()))

    @property
    def short(self) -> tuple[int, ...]:
        """The seeds of the short run."""
        return tuple(import_module(self.module).SHORT)


def hunts(folders: Sequence[str] = FOLDERS) -> list[Hunt]:
    """The hunts of some folders, by folder and name."""
    return [hunt for folder in folders for hunt in _hunts_of(folder)]


def _hunts_of(folder: str) -> list[Hunt]:
    found = []
    for file in sorted((HERE / folder).glob("*.py")):
        tree = ast.parse(file.read_text())
        if any(isinstance(each, ast.FunctionDef) and each.name == "hunt" for each in tree.body):
            aim = (ast.get_docstring(tree) or "").partition("\n")[0]
            name = file.stem.replace("_", "-")
            found.append(Hunt(name, aim, f"tests.hunts.{folder}.{file.stem}"))
    return found


def hunt_named(name: str, folders: Sequence[str] = FOLDERS) -> Hunt:
    return {each.name: each for each in hunts(folders)}[name]


def short_run(name: str) -> None:
    """The short run of a hunt, as the suite has it: raises what the hunt finds.

    Spark's hunts take the session that is there, so that a test of Spark may call this too.
    """
    hunt = hunt_named(name)
    for seed in hunt.short:
        try:
            hunt.play(seed)
        except Exception as error:
            error.add_note(f"again: {again(hunt, seed)}")
            raise


def again(hunt: Hunt, seed: int, faults: Sequence[str] = ()) -> str:
    """The command that plays a round once more."""
    chosen = f" --faults {','.join(faults)}" if faults else ""
    return f"python -m tests.hunts {hunt.name} --seed {seed} --rounds 1{chosen}"
