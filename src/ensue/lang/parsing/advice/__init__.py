"""Advice for mistakes that no rewriting mends, by the part of a library in which they stand.

In comes a `Mistake`: a place, what was found there and what could have stood there; out goes a
sentence, or None where the advice does not apply. `ensue.lang.parsing.hints` asks in its order.
"""
