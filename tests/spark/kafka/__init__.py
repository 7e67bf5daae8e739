"""Streams from and to a real Kafka broker."""
