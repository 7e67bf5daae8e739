"""What can be said of an expression before it runs.

`kinds` finds mistakes and the kind of the result, `fitting` whether that result fits an attribute,
and `surprises` warns of what is right and yet reads otherwise than it looks.
"""
