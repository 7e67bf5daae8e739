"""Snapshots of sites: the state as plain data (`saved`), and the files that it outlives a process
in (`journal`)."""
