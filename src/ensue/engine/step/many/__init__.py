"""Many rules that read by one key, each with a cell, moved by compiled loops.

`grouping` chooses the rules that have cells, and says which of them share a table; `group` has the
rules and keys of one group, `cells` the array of all cells and the tables of its rules, `kernels`
the loops over them, `key_state` what a key holds and the way of a rule's state into a cell and
back, and `outputs` builds the outputs of rules that have fired.
"""
