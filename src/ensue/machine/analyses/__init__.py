"""What a correlation means, told before it runs: exactly, and each answer with a shortest witness.

`behaviour` is a correlation as configurations and steps; `alphabet` the kinds of events that can
come (with `mentions` and `values` for predicates); `exploration` looks at every situation that one
correlation or two side by side can get into, with `zones` for what is known of times; `witness`
makes a way through it into real events. On these stand `comparison` (equivalent, contained,
contains, different), `properties` (can it put out, does it always, can it get stuck, which parts
are dead), `dependencies` (which inputs an output depends on, who feeds whom) and `warnings`, which
places findings in the text of a library.

Nothing is guessed: past a budget, or where predicates cannot be told apart, an answer is undecided
and says why.
"""
