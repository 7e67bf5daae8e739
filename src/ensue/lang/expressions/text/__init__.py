"""Expressions from text to tree and back."""
