"""Kafka without streams: CloudEvents as records, the connector for Spark, a broker for trials."""
