"""Events on their way into a batch: from tables to rows that rules read.

`intake` checks tables and cuts them into batches in the order of their times, `batches` reads the
rows of a table, `column` has the values of one name, `predicates` evaluates expressions over whole
columns, `keys` numbers keys and texts, and `matching` says which rows match which ports of a rule.
`text_writing` has the loops that write columns of texts, for outputs too.
"""
