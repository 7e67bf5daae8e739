"""What runs in Spark's Python workers: rows to events, sorting, engines over a partition."""
