"""Redis: streams (`kind = "redis"`) and pub/sub (`kind = "redis-pubsub"`)."""
