"""Correlations over Spark DataFrames: a DataFrame of events in, a DataFrame of outputs out.

`correlate` plans a library over a DataFrame (`plan`, `layout`, `reading`, `predicates`,
`conformance`) and hands its partitions to workers (`worker`, `gathering`, `ordered`). The rules
mean what they mean everywhere: what SQL can say exactly runs in SQL, and all else in the engines.
Only the DataFrame API is used, so that all of it runs through Spark Connect as well. Whoever
imports this room needs PySpark; nobody else does.
"""

from ensue.spark.batch.job import correlate, rejected
from ensue.spark.explaining import explain
from ensue.spark.packaging import package

__all__ = ["correlate", "explain", "package", "rejected"]
