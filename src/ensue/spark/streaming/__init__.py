"""Correlations over streams of Spark: the same rules, the same outputs, as events come.

`correlate` hands streams on to here (`dispatch`); `job` plans a library over a streaming DataFrame,
`packing` and `bucket` are its workers. `split` takes apart the outputs and what was left out, and
`FiguresListener` tells what every micro-batch has done, in all and for each rule. Names are
imported when they are first used, since `ensue.spark.batch.job` begins here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensue.spark.streaming.figures import Figures, FiguresListener, RuleFigures
    from ensue.spark.streaming.job import correlate_stream, split

__all__ = ["Figures", "FiguresListener", "RuleFigures", "correlate_stream", "split"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from ensue.spark.streaming import figures, job

    return getattr(figures if "Figures" in name else job, name)
