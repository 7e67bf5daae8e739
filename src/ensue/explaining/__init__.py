"""Explanations of rules in words, for the command line, editors and assistants."""
