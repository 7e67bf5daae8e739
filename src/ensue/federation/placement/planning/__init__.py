"""Planning: where each rule runs, and what travels to it (`placement`).

`needs` tells what a site has to see before a rule can trigger, `branches` which branches of a rule
can be placed apart, and `refusing` which rules cannot be placed at all.
"""
