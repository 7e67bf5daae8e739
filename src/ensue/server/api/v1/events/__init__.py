"""`/v1/events`: `publishing` with `bodies` for POST, `subscribing` for GET and sockets."""
