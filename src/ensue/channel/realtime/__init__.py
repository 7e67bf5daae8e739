"""Settings of the operating system and of the interpreter for `real_time=True`."""
