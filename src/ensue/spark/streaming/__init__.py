"""Correlations over streams of Spark: the same rules, the same outputs, as events come.

`correlate_stream` plans a library over a streaming DataFrame; `split` takes its outputs and the
events that came too late apart.
"""

from ensue.spark.streaming.job import correlate_stream, split

__all__ = ["correlate_stream", "split"]
