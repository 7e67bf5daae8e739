"""Correlations over Spark DataFrames: a DataFrame of events in, a DataFrame of outputs out.

`dispatch` has the calls, for bounded DataFrames (`batch`) and streams (`streaming`, and `kafka` for
records of Kafka). `plan` groups the rules of a library by key, `sql` says in Spark SQL which rows a
group reads, and `worker` runs the engines over the rows of a partition. What SQL can say exactly
runs in SQL, and all else in the workers, so that rules mean what they mean in the other engines.
Only the DataFrame API is used, which also works through Spark Connect. Only this room imports
PySpark.
"""

from ensue.spark.dispatch import correlate, rejected
from ensue.spark.explaining import explain
from ensue.spark.packaging import package

__all__ = ["correlate", "explain", "package", "rejected"]
