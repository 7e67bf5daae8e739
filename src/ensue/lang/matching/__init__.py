"""Many predicates over one event, without asking each: what a predicate needs, and an index of it.

`outcomes` turns a predicate into conjunctions of signed atoms, `tests` reads an atom as a test of
one name against constants, `patterns` finds in a LIKE what text must hold. `index` keeps every
conjunction under one witness, a test without which it cannot hold, and checks in a compiled loop
(`packed`) the conjunctions whose witness an event brings up. Nothing here knows subscriptions,
channels or engines: a predicate is known by the number under which it was added.
"""
