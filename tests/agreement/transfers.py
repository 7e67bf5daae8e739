"""Runs over tables of events, as lines of text, and over several sites: trials that are carried.

In comes a trial; out go what is expected and what came. A table keeps only declared attributes,
so that the reference engine is the judge of what it gives; lines are, byte for byte, the events as
they are encoded. Sites read a part of the events each, and send on what others need: what comes out
is what one machine puts out over the events that are at a site, those of one time in the order of
the sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

import pyarrow as pa

from ensue.engine.batch import BatchEngine
from ensue.engine.batch.input.intake import EventBatch
from ensue.engine.batch.output.lines import batch_lines
from ensue.engine.batch.output.schema import events_table, output_schema
from ensue.events.arrow import events_of, table_of
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary

from .observed import Observed
from .trials import Trial

Both = tuple[Observed, Observed]


def as_tables(trial: Trial) -> Both:
    """Arrow tables in and out, cut in two at an odd place."""
    checked = trial.library.checked
    types = checked.types
    table = table_of(trial.in_order, types)
    run = trial.library.start("reference")
    outputs = run.push_all(events_of(table, types))
    outputs += run.finish(trial.until)
    engine = BatchEngine(checked)
    at = trial.seed % (table.num_rows + 1)
    parts = [engine.push_batch(table.slice(0, at)), engine.push_batch(table.slice(at))]
    parts.append(engine.finish(trial.until))
    made = [each for part in parts for each in events_of(part, types)]
    return Observed.of(events_of(outputs_table(outputs, checked), types)), Observed.of(made)


def outputs_table(events: Sequence[Event], library: CheckedLibrary) -> pa.Table:
    """Outputs as a table, by the columns of their library."""
    return events_table(events, library.types, output_schema(library.types, library.correlations))


def as_lines(trial: Trial) -> Both:
    """Outputs written from columns, all of them and those of one rule."""
    checked = trial.library.checked
    events = trial.in_order
    by_event, by_line = BatchEngine(checked), BatchEngine(checked)
    name = Random(trial.seed).choice(trial.library.correlations.names)
    at = trial.seed % (len(events) + 1)
    wanted, found = [], []
    for part in (events[:at], events[at:]):
        outputs = by_event.read_all(part)
        alone = [each for each in outputs if each.extensions["correlation"] == name]
        wanted += [encode(each).decode() + "\n" for each in [*outputs, *alone]]
        batches = list(by_line.read_batch(EventBatch(part, checked.types)))
        found += [line for each in batches for line in batch_lines(each).to_pylist()]
        found += [line for each in batches for line in batch_lines(each, name).to_pylist()]
    return Observed(wanted), Observed(found)


def over_sites(trial: Trial) -> Both:
    """Over two to four sites, with slow links and beats of the clock between them."""
    # What follows is slow to import, and only this way needs it.
    from tests.federation.placement.agreement import Way, of_one_machine, simulated
    from tests.federation.placement.random_trials import placed

    drawn = placed(trial.seed, trial.library, trial.in_order)
    outputs, _ = simulated(drawn, Way.drawn(trial.seed))
    return Observed(of_one_machine(drawn)), Observed(outputs)


TRANSFERS: Mapping[str, Callable[[Trial], Both]] = {
    "as tables": as_tables,
    "as lines": as_lines,
    "over sites": over_sites,
}
