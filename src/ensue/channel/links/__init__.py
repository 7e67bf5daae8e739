"""Links to other channels: routing, and transport within a process or over TCP."""
