"""Random histories and temporal filters for as long as one likes, in several stores, against
brute force:

    python -m tests.history.campaign --seconds 60 --seed 1 [--url postgresql://... ...]

Every round writes the same events, singly and in batches, to a
history in memory, in SQLite and in Parquet, and to those given. Before each write one filter is
asked of all, surely and possibly, and compared with the definitions (`judge`); at the end of a
round what `find` gives is. The first difference ends the campaign with its seed and filter.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from ensue.events.event import Event
from ensue.history import History
from ensue.lang.expressions.text.parsing import parse_expression
from tests.history.generator import Generator
from tests.history.judge import Judge, Known


def play(seed: int, histories: Sequence[tuple[str, History]], told: Counter[str]) -> None:
    """One round. Raises `AssertionError` where a store and the definitions differ."""
    random = Random(seed)
    uncertain = random.random() < 0.3
    made = Generator(Random(seed), ticks=random.choice([8, 20, 60]), uncertain=uncertain)
    stored: list[Known] = []
    waiting: list[Event] = []
    for number in range(8 if uncertain else 24):
        event = made.event(number)
        text = made.filter(depth=random.choice([1, 2] if uncertain else [1, 2, 3]))
        _ask(seed, text, event, Judge(stored), histories, told)
        waiting.append(event)
        if random.random() < 0.6:
            _keep(waiting, histories)
            stored = [*stored, *map(Known.of, waiting)]
            waiting = []
    _keep(waiting, histories)
    stored = [*stored, *map(Known.of, waiting)]
    _find(seed, made.filter(depth=2), Judge(stored), histories, told)


def _ask(
    seed: int,
    text: str,
    event: Event,
    judge: Judge,
    histories: Sequence[tuple[str, History]],
    told: Counter[str],
) -> None:
    expression, known = parse_expression(text), Known.of(event)
    surely = judge.matches(expression, known)
    possibly = judge.matches(expression, known, True)
    told[f"{surely}"] += 1
    for name, history in histories:
        given = history.matches(text, event), history.possibly(text, event)
        if given != (surely, possibly):
            raise AssertionError(
                f"seed {seed}, {name}: `{text}` of {event!r} is {given}, not {surely, possibly}"
            )


def _find(
    seed: int,
    text: str,
    judge: Judge,
    histories: Sequence[tuple[str, History]],
    told: Counter[str],
) -> None:
    expression = parse_expression(text)
    expected = sorted(each.event.id for each in judge.stored if judge.matches(expression, each))
    told["found"] += len(expected)
    for name, history in histories:
        found = sorted(event.id for event in history.find(text))
        if found != expected:
            raise AssertionError(f"seed {seed}, {name}: `{text}` finds {found}, not {expected}")


def _keep(events: Sequence[Event], histories: Sequence[tuple[str, History]]) -> None:
    for _, history in histories:
        history.add_all(events)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--url", nargs="*", default=[], help="empty histories, for the first round")
    given = parser.parse_args()
    until, seed, told = time.monotonic() + given.seconds, given.seed, Counter[str]()
    while time.monotonic() < until:
        with TemporaryDirectory() as folder, ExitStack() as stack:
            path = Path(folder)
            urls = ["memory:", f"sqlite:{path / 'h.db'}", f"parquet:{path / 'h'}"]
            urls += given.url if seed == given.seed else []
            histories = [(url, stack.enter_context(History.open(url))) for url in urls]
            play(seed, histories, told)
        seed += 1
    print(f"{seed - given.seed} rounds: {dict(told)}")


if __name__ == "__main__":
    main()
