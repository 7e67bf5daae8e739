"""Machines as pictures: the same graph as JSON, Mermaid, DOT and SVG.

As in the papers' figures, states are circles and transitions small boxes. A shaded box needs all of
the states that lead to it (or one of each group), an unshaded one any of them. What is active at
the start has a second ring. What a box clears is told in its tooltip, not drawn: in most machines
it is everything around it.
"""

from ensue.machine.drawing.dot import to_dot
from ensue.machine.drawing.json import to_json
from ensue.machine.drawing.mermaid import to_mermaid
from ensue.machine.drawing.svg import to_svg

__all__ = ["to_dot", "to_json", "to_mermaid", "to_svg"]
