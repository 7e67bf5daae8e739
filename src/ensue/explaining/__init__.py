"""Rules in words, for people: what the command line, editors and assistants show."""
