"""CloudEvents over HTTP: webhooks in and out, and WebSockets."""
