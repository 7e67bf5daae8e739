"""The reference engine: the definitions as plainly as they can be written.

`memory` says what a filter matches, `filters` what a trigger does, `ecl` what each ECL operator
does. It is the judge of all other engines, so it prefers clarity to speed.
"""

from __future__ import annotations

from functools import partial

from ensue.engine.counts import Counts
from ensue.engine.reference.ecl import EclInstance
from ensue.engine.reference.filters import FilterInstance
from ensue.engine.stream import InstanceStart, Stream
from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import Correlation, FilterCorrelation


def reference_engine(library: CheckedLibrary, counts: Counts) -> Stream:
    return Stream(library, counts, instance_starter)


def instance_starter(correlation: Correlation) -> InstanceStart:
    """A function that starts instances of a correlation."""
    if isinstance(correlation, FilterCorrelation):
        return partial(FilterInstance, correlation)
    return partial(EclInstance, correlation)
