"""Many rules that read by one key, in one pass over a batch.

`group` has the rules and keys of one group, `row_lists` finds the rows that each port wants and the
rules that want each row, and `visits` takes the rows through the cells of these rules.
"""
