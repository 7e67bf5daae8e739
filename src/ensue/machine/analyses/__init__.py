"""What a correlation means, told before it runs: exactly, and each answer with a shortest witness.

`behaviour` is a correlation as configurations and steps; `alphabet` the kinds of events that can
come (with `sampling`, `mentions` and `values` for predicates). `guided` looks for differences by
the order of moments, going first where an output is near (`distances`); `exploration` looks at
every situation with all that is known of times (`zones`); `witness` makes a way through either into
real events. What is written alike needs neither (`normal_form`). On these stand `comparison`
(equivalent, contained, contains, different), `properties` (can it put out, does it always, can it
get stuck, which parts are dead), `dependencies` (which inputs an output depends on, which
correlation feeds which) and `warnings`, which places findings in the text of a library.

Nothing is guessed: past a budget, or where predicates cannot be told apart, an answer is undecided
and says why.
"""
