"""The start and the end of the command: the catalogue of commands, options, a fast process."""
