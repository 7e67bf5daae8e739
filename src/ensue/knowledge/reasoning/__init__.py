"""What follows from an ontology: its triples closed under OWL 2 RL (`closure`).

`rules` has the rules that the reasoner `reasonable` leaves out, `contradictions` the rules that
find an ontology at odds with itself, with `datatypes` for literals. All of them work on `triples`,
in the words of `vocabulary`.
"""
