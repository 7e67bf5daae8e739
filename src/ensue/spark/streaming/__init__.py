"""Correlations over streams of Spark: the rules and outputs of `batch`, while events come.

`job` plans a library over a streaming DataFrame, `kafka` over Kafka records; `chunks`,
`column_chunks` and `bucket` run on the workers. `split` separates outputs from late events and
rejected rows. `FiguresListener` reports what each micro-batch has done, in all and by rule.
`pipeline` runs a whole stream, from a source to a sink, as a configuration (`config`) says.
"""

from ensue.spark.streaming.figures import Figures, FiguresListener, RuleFigures, figures_of
from ensue.spark.streaming.job import correlate_stream, split

__all__ = [
    "Figures",
    "FiguresListener",
    "RuleFigures",
    "correlate_stream",
    "figures_of",
    "split",
]
