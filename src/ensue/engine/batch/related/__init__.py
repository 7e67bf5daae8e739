"""Rules that relate events, over batches: matches first, then which of them trigger.

`correlation` is such a rule with all of its keys. `latest_matches` finds the matches that events
complete, `waiting` holds matches until their `timeout` is up, and `conditions` evaluates `having`.
Where a rule has aggregates or binds first events, its keys have registers for these
(`stretch_registers`): the loops of `stretches` read events of the store, with their values
(`aggregated_values`), into aggregates (`port_aggregates`, `sums`). `tallies` has the counts and
sums of events that are gone, and `saving` the state of a rule as plain data.
"""
