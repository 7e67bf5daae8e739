"""How Spark is measured: jobs, streams, and Flink beside them."""
