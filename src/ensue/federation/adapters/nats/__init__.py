"""NATS: core (`kind = "nats"`) and JetStream (`kind = "nats-jetstream"`)."""
