"""Rules that relate events, over batches: matches first, then which of them trigger.

`correlation` is such a rule with all of its keys. `latest_matches` finds the matches that events
complete, `waiting` holds matches until their `timeout` is up, and `having` evaluates the operands
of conditions for all candidates at once. Where a rule counts events, `counting` prepares what
`stretches` reads: events and aggregates (`port_aggregates`), sums and conditions (`sums`,
`conditions`). `saving` turns the state of a rule into plain data and back.
"""
