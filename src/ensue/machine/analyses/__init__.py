"""Exact questions about correlations before they run, each answered with a shortest witness.

`behaviour` is a correlation as configurations and steps; `events` has the kinds of events that can
come, as far as predicates can tell. Two searches go through all situations: `search.exploration`
with all that is known of times, `search.guided` by the order of moments alone, where an output is
near first. `witness` turns a path through either into real events. Rules that differ only in how
they are written need no search (`normal_form`).

The answers: `comparison` (equivalent, contained, contains, different), `properties` (can it put
out, does it always, can it get stuck, which parts are dead), `dependencies` (on which inputs an
output depends, which correlation feeds which), `conditions` that can never hold, and `warnings`,
which place findings in the text of a library.

Nothing is guessed: past a budget, or where predicates cannot be told apart, an answer is undecided
and says why.
"""
