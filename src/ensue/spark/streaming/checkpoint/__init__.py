"""What a stream keeps in its checkpoint beside Spark: a lock, its rules, signatures."""
