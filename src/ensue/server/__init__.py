"""One process that a team runs: HTTP API and console over libraries, history and gateways.

    ensue serve ensue.toml

`settings` reads the file; `station` holds what runs and what was acknowledged; `access` says who
may do what; `api` speaks HTTP; `console` is the page that it serves; `serving` runs the process.
Nothing imports this room but the command line. It needs the extra `server`.
"""
