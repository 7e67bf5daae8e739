"""The routes below `/v1/`, a module a path: `/v1/rules` is in `rules`, `/v1/events` in `events`."""
