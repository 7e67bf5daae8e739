"""What follows from a syntax tree alone, for all rooms that work from it.

`parts` lists what a filter holds, `keys` names the attributes of `by`, `label_logic` evaluates the
label expression of a case, `relating` finds the clauses that need remembered events, `wire_names`
puts the `type` of events in place of declared names, `renaming` calls ports by their numbers,
`without_ontology` replaces the terms that ask an ontology, and `wanted` names the types and keys
that rules ask for. Nothing is checked here
(`ensue.lang.checking`) and nothing runs.
"""
