"""An index over very many predicates, which finds those that hold for an event.

`outcomes` turns a predicate into conjunctions of signed atoms, `tests` reads an atom as a test of
one name against constants, `patterns` finds the fixed texts in a LIKE pattern. `index` puts every
conjunction under one witness, a test without which it cannot hold, and a compiled loop (`packed`)
checks the conjunctions whose witness holds for an event. A predicate is known by the number under
which it was added: subscriptions, channels and engines build on this.
"""
