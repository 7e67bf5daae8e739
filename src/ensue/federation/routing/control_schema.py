"""The JSON Schema of control events that clients send and get: requests and their answers.

It is made from the structures that gateways read (`control`), so that it says what they accept.
`docs/control-events.schema.json` is its text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ensue.federation.routing.control import PREFIX, VERBS, Request, RequestDone


def control_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a control event as a whole CloudEvent."""
    (request, done), definitions = msgspec.json.schema_components(
        [Request, RequestDone], ref_template="#/$defs/{name}"
    )
    for each in definitions.values():
        each.pop("description", None)
        members = each["properties"]
        # What tells the kinds apart in a message.
        if "type" in members:
            members["is"] = members.pop("type")
        each["required"] = [name for name in each.get("required", ()) if name != "type"]
    requests = [PREFIX + verb for verb in VERBS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Control events of Ensue for clients",
        "type": "object",
        "required": ["specversion", "id", "source", "type", "time", "data"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {"type": "string", "minLength": 1},
            "source": {"type": "string", "minLength": 1},
            "time": {"type": "string", "format": "date-time"},
        },
        "oneOf": [
            {"properties": {"type": {"enum": requests}, "data": request}},
            {"properties": {"type": {"const": PREFIX + "done"}, "data": done}},
        ],
        "$defs": definitions,
    }
