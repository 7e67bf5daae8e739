"""The `ensue` command, as a person or a script meets it."""
