"""Apache Kafka, and what speaks its protocol."""
