"""Which events there are, as far as predicates can tell: values, their classes, sets of ports."""
