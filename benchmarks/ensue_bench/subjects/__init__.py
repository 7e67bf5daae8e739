"""What can be measured: each module has a `measure(effort)` that yields its findings."""
