"""Checks of an expression before it runs.

`kinds` finds mistakes and the kind of the result, `fitting` checks whether that result fits an
attribute, and `surprises` warns of expressions that are correct and misleading.
"""
