"""Advice for mistakes that no rewriting can correct, by the part of a library.

In comes a `Mistake`: a place, what was found there and what is allowed there; out goes a sentence,
or None if the advice does not apply. `ensue.lang.parsing.hints` has the order of all advice.
"""
