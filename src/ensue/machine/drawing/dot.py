"""A machine in DOT, the language of Graphviz."""

from __future__ import annotations

from ensue.machine.drawing.graph import graph_of
from ensue.machine.model import Machine


def to_dot(machine: Machine, name: str = "machine") -> str:
    graph = graph_of(machine)
    lines = [
        f"digraph {_quoted(name)} {{",
        "    rankdir=LR;",
        '    node [fontname="Helvetica", fontsize=10];',
    ]
    for circle in graph.circles:
        text = _quoted(circle.text, *circle.notes)
        shape = "doublecircle" if circle.is_initial else "circle"
        lines.append(f"    {circle.id} [shape={shape}, width=0.2, label={text}];")
    for box in graph.boxes:
        fill = ', style=filled, fillcolor="#cfd8e3"' if box.is_shaded else ""
        text = f"label={_quoted(*box.lines)}, tooltip={_quoted(box.tooltip)}"
        lines.append(f"    {box.id} [shape=box, height=0.2, {text}{fill}];")
    lines += [f"    {arrow.source} -> {arrow.target};" for arrow in graph.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'
