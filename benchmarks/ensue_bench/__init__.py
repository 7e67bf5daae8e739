"""Measurements of Ensue, on the machine at hand: `ensue bench WHAT`.

In comes the name of a subject and how much effort to spend; out goes a `Report` of figures and
curves, which prints as a table and saves as JSON. A subject is one module of `subjects` with a
`measure(effort)` that yields what it finds; naming it in `SUBJECTS` is all that it takes to add
one. Nothing here is part of running a rule, and only the command imports it.
"""

from __future__ import annotations

from collections.abc import Mapping

SUBJECTS: Mapping[str, str] = {
    "machine": "loading rules, the step engine, many rules, snapshots, first use",
    "analyses": "comparing rules, and finding out what one can do",
    "batch": "events a second from Arrow tables, and of the loops alone",
    "files": "whole runs over files, beside a bare read of the same file",
    "curves": "cost against expression, keys, rules and window",
    "channel": "latency, deadlines, spacing and look-up of the event channel, beside the paper",
    "subscriptions": "an index over very many filters, beside asking each of them",
    "history": "temporal filters over stored events, beside the paper; durable writes",
    "server": "a server under load: publishing, WebSockets, subscribers, a kill",
    "federation": "gateways between brokers, beside client libraries alone; mappings; crossings",
    "spark": "rules on Spark, in batch and in streams, beside Spark itself and Flink",
    "values": "rules over several events: conditions, aggregates, windows; beside Esper",
    "esper": "the same events and patterns through Esper, beside both engines",
}
"""What can be measured; a subject is the module of that name."""
