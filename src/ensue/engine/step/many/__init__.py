"""Many rules that read by one key, each with a cell, moved by compiled loops.

`grouping` chooses the rules that have cells, `group` has the rules and keys of one group, `cells`
the array of all cells, `kernels` the loops over them, `exchange` the way of a rule's state into a
cell and back, and `outputs` what rules put out that have fired.
"""
