"""A mapping compiled ahead: its steps as the source of one function, without a look at the rules.

Names and types stand in the source as literals, made by `repr`; expressions, templates and code of
the user are handed in under names of our own. No text of a user is ever part of the source as code.
"""

from __future__ import annotations

from typing import Any

from ensue.events.event import Event
from ensue.federation.mapping.rules import (
    Mapped,
    MappingError,
    MappingRule,
    computed,
    retyped,
)
from ensue.federation.mapping.templates import as_text


def compiled(mapping: MappingRule) -> Mapped:
    """The mapping as a function of its own."""
    names: dict[str, Any] = {
        "Event": Event,
        "MappingError": MappingError,
        "as_text": as_text,
        "computed": computed,
        "retyped": retyped,
    }
    code = compile(source_of(mapping, names), f"<mapping at {mapping.at}>", "exec")
    exec(code, names)
    function: Mapped = names["mapped"]
    return function


def source_of(mapping: MappingRule, names: dict[str, Any]) -> str:
    """The source of the function; `names` is given the objects that the source refers to."""
    lines = ["def mapped(event):"]
    if mapping.where is not None:
        names["where"] = mapping.where
        lines += ["    if not where.matches(event):", "        return event"]
    lines += ["    data, subject = event.data, event.type"]
    steps = _parameter_steps(mapping, names)
    if steps:
        lines += ["    if data is None or isinstance(data, dict):"]
        lines += ["        values = dict(data) if data is not None else {}"]
        lines += [f"        {each}" for each in steps]
        lines += ["        data = values or data"]
        lines += ["        if data is not None: data = values"]
    if mapping.subject is not None:
        lines += [f"    {each}" for each in _subject_steps(mapping)]
    lines += [
        "    made = Event(event.id, event.source, subject, event.time, data, event.extensions)"
    ]
    if mapping.plugin is not None:
        names["plugin"] = mapping.plugin
        lines += ["    return plugin(made)"]
    else:
        lines += ["    return made"]
    return "\n".join(lines) + "\n"


def _parameter_steps(mapping: MappingRule, names: dict[str, Any]) -> list[str]:
    steps: list[str] = []
    if mapping.split is not None:
        names["split"] = mapping.split.split
        steps += ["values.update(split(event.type) or ())"]
    if mapping.rename:
        renamed = repr(mapping.rename)
        names["renamed"] = mapping.rename.get
        steps += [f"if not values.keys().isdisjoint({renamed}):"]
        steps += ["    values = {renamed(name, name): value for name, value in values.items()}"]
    steps += [f"values.pop({name!r}, None)" for name in mapping.remove]
    for name, wanted in mapping.retype.items():
        names[f"is_{wanted}"] = _PLAIN.get(wanted)
        steps += [f"value = values.get({name!r})"]
        steps += [f"if value is not None and type(value) is not is_{wanted}:"]
        steps += [f"    values[{name!r}] = retyped({name!r}, value, {wanted!r})"]
    for place, (name, expression) in enumerate(mapping.compute.items()):
        names[f"expression{place}"] = expression
        so_far = "Event(event.id, event.source, subject, event.time, values, event.extensions)"
        steps += [f"values[{name!r}] = computed({name!r}, expression{place}, {so_far})"]
    return steps


def _subject_steps(mapping: MappingRule) -> list[str]:
    assert mapping.subject is not None
    text = mapping.subject.text
    parts = [repr(mapping.subject.literals[0])]
    for name, literal in zip(mapping.subject.names, mapping.subject.literals[1:], strict=True):
        parts += [f"as_text(known[{name!r}])", repr(literal)]
    problem = f"the subject `{text}` needs "
    return [
        "known = data if isinstance(data, dict) else {}",
        "try:",
        f"    subject = {' + '.join(parts)}",
        "except KeyError as error:",
        f"    name = error.args[0]; problem = {problem!r}",
        '    raise MappingError(f"{problem}`{name}`, which the event lacks") from None',
    ]


_PLAIN: dict[str, type | None] = {"string": str, "long": int, "double": float, "boolean": bool}
"""Types whose values stay as they are; a timestamp is always brought into one form."""
