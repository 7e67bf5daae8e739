"""AMQP 0-9-1 brokers, such as RabbitMQ."""
