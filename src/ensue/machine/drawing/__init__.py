"""Machines as pictures: the same graph as JSON, Mermaid, DOT and SVG.

As in the papers' figures, states are circles and transitions small boxes. A shaded box needs all of
the states that lead to it (or one of each group), an unshaded one any of them. States that are
active at the start have a second ring. The states that a box clears are in its tooltip and not
drawn: in most machines these are all states around it.
"""

from ensue.machine.drawing.dot import to_dot
from ensue.machine.drawing.json import to_json
from ensue.machine.drawing.mermaid import to_mermaid
from ensue.machine.drawing.svg import to_svg

__all__ = ["to_dot", "to_json", "to_mermaid", "to_svg"]
