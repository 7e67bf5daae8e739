"""Links over TCP: `links` listens and dials, `connection` is one socket, `session` outlives it.

A connection begins with a `handshake` (who may take part is in `protection`) and carries the frames
of `wire`; a session keeps what it has sent in its `outbox` until it is acknowledged. All of it runs
in one event loop of the process (`loop`).
"""
