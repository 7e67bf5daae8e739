"""What `real_time=True` asks of the operating system and of the interpreter."""
