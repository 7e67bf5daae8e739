"""Facts and trees that follow from a syntax tree alone, for all rooms.

`parts` lists the parts of a filter, `keys` names the attributes of `by`, `label_logic` evaluates
the label expression of a case, `relating` finds the clauses that need remembered events,
`wire_names` puts the `type` of events in place of declared names, `renaming` renames ports to
numbers, `without_ontology` replaces the terms that ask an ontology, and `wanted` finds the types
and keys that rules read. Nothing is checked here (`ensue.lang.checking`) and nothing runs.
"""
