"""The JSON schemas of what the API takes and gives, for its OpenAPI description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from ensue.lang.diagnostics import Severity
from ensue.machine.plan import Form
from ensue.server.api.requests.problems import NAMES, PREFIX
from ensue.server.station.entries import KINDS
from ensue.server.station.record.registry import ACTIONS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
REAL: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANYTHING: Schema = {}
KIND: Schema = {"type": "string", "enum": list(KINDS)}
CAUSE: Schema = {"type": "string", "enum": ["event", "output", "clock"]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def array(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def maybe(of: Schema) -> Schema:
    return {"anyOf": [of, {"type": "null"}]}


def one_of(*choices: str) -> Schema:
    return {"type": "string", "enum": list(choices)}


def record(optional: Sequence[str] = (), /, **members: Schema) -> Schema:
    """An object that has all of these members, but for the optional ones."""
    return {
        "type": "object",
        "properties": members,
        "required": [name for name in members if name not in optional],
    }


def request(optional: Sequence[str] = (), /, **members: Schema) -> Schema:
    """An object that may have no other members."""
    return {**record(optional, **members), "additionalProperties": False}


_VERSION = {"version": NUMBER, "at": TIME, "author": TEXT, "note": TEXT}
_LISTS = dict.fromkeys(("kept", "changed", "added", "removed"), array(TEXT))
_COUNTS = {"rule": TEXT, "library": TEXT, "version": NUMBER, "outputs": NUMBER, "rate": REAL}
_SUMMARY = {
    "name": TEXT,
    **_VERSION,
    "etag": TEXT,
    "enabled": YES_NO,
    "rules": array(TEXT),
    "outputs": NUMBER,
    "refused": NUMBER,
    "late": NUMBER,
}
_RULE = {
    **_COUNTS,
    "without_key": NUMBER,
    "last": maybe(record(position=NUMBER, time=TIME, key=maybe(TEXT), id=TEXT)),
}
_DRAWN = {"text": TEXT, "form": one_of(*get_args(Form)), "why_form": TEXT, "svg": maybe(TEXT)}
_DONE = record(part=TEXT, time=TIME, event=maybe(TEXT))
_WEBHOOK = {
    "url": {"type": "string", "format": "uri"},
    "kinds": array(KIND),
    "filter": maybe(TEXT),
    "library": maybe(TEXT),
    "correlation": maybe(TEXT),
    "secret": maybe(TEXT),
}
_SAMPLE_COUNTS = (
    "events", "outputs", "delivered", "waiting", "subscribers", "history_lag",
)  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "Problem": {
        **record(
            type=one_of(*(f"{PREFIX}{each}" for each in NAMES)),
            title=TEXT, status=NUMBER, detail=TEXT,
        ),
        "description": "RFC 9457; `detail` says what to do",
    },
    "Diagnostic": record(
        severity=one_of(*get_args(Severity)),
        code=TEXT,
        message=TEXT,
        line=NUMBER,
        column=NUMBER,
        width=NUMBER,
        text=TEXT,
        hint=maybe(TEXT),
        shown=TEXT,
    ),
    "Event": {
        "type": "object",
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {"type": "string", "minLength": 1},
            "source": {"type": "string", "minLength": 1},
            "type": {"type": "string", "minLength": 1},
            "time": TIME,
            "data": ANYTHING,
        },
        "required": ["id", "source", "type"],
        "description": "a CloudEvent 1.0; without a time it gets that of its arrival",
    },
    "Published": record(
        accepted=NUMBER,
        duplicates=NUMBER,
        expired=NUMBER,
        position=NUMBER,
        rejected=array(record(index=NUMBER, problems=array(TEXT))),
        unread=array(record(index=NUMBER, library=TEXT, problems=array(TEXT))),
    ),
    "Change": record(
        ("warnings",),
        name=TEXT,
        version=NUMBER,
        enabled=YES_NO,
        is_new=YES_NO,
        warnings=array(ref("Diagnostic")),
        **_LISTS,
    ),
    "Summary": record(**_SUMMARY),
    "Library": record(
        **_SUMMARY,
        text=TEXT,
        refusals=array(record(id=TEXT, type=TEXT, time=TIME, problems=array(TEXT))),
    ),
    "Version": record(**_VERSION, in_force=YES_NO, text=TEXT),
    "Difference": record(
        **{"from": maybe(record(**_VERSION)), "to": maybe(record(**_VERSION))},
        unified={"type": "string", "description": "as `diff -u` writes it; empty if equal"},
        added_lines=NUMBER,
        removed_lines=NUMBER,
        rules=maybe(record(**_LISTS)),
        diagnostics=array(ref("Diagnostic")),
    ),
    "RollBack": request(
        ("note",),
        version={"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
        note={"type": "string", "maxLength": 1_000},
    ),
    "DryRunOf": request(
        ("text", "since", "until"), text=maybe(TEXT), since=maybe(TIME), until=maybe(TIME)
    ),
    "DryRun": record(
        whole=YES_NO,
        why=maybe(TEXT),
        seconds=REAL,
        outputs=NUMBER,
        rules=array(
            record(rule=TEXT, outputs=NUMBER, keys=NUMBER, top_keys=array(array(ANYTHING)))
        ),
        first=array(ref("Event")),
        difference=maybe(
            record(
                only_new=NUMBER,
                only_in_force=NUMBER,
                both=NUMBER,
                new_outputs=array(ref("Event")),
                missing_outputs=array(ref("Event")),
            )
        ),
    ),
    "RuleCount": record(**_RULE),
    "Rule": record(
        **_RULE,
        **_DRAWN,
        keys=NUMBER,
        states={"type": "object", "additionalProperties": NUMBER},
        some_keys=array(TEXT),
    ),
    "Reasons": record(
        rule=TEXT,
        reasons=array(
            record(
                key=maybe(TEXT),
                started=YES_NO,
                done=array(_DONE),
                waits_for=maybe(TEXT),
                before=maybe(TIME),
                left=array(_DONE),
                text=TEXT,
            )
        ),
        read=NUMBER,
        since=maybe(TIME),
        whole=YES_NO,
    ),
    "Found": record(events=array(ref("Event")), more=YES_NO, next=maybe(TEXT)),
    "FilterNames": record(
        attributes=array(record(name=TEXT, declared=YES_NO, seen=NUMBER, hint=maybe(TEXT))),
        events=NUMBER,
    ),
    "Outputs": record(
        outputs=array(
            record(
                position=NUMBER,
                library=maybe(TEXT),
                correlation=maybe(TEXT),
                key=maybe(TEXT),
                event=ref("Event"),
            )
        ),
        more=YES_NO,
        next=maybe(NUMBER),
    ),
    "Opened": record(
        seq=NUMBER,
        library=maybe(TEXT),
        event=ref("Event"),
        trigger=TEXT,
        causes=array(
            record(
                id=TEXT, kind=one_of("event", "output"), seq=maybe(NUMBER),
                event=maybe(ref("Event")),
            )
        ),
    ),
    "OutputReason": record(
        why=maybe(TEXT),
        causes=array(
            record(
                part=TEXT,
                kind=CAUSE,
                time=TIME,
                id=maybe(TEXT),
                seq=maybe(NUMBER),
                event=maybe(ref("Event")),
            )
        ),
        read=NUMBER,
        since=maybe(TIME),
        whole=YES_NO,
    ),
    "Type": record(
        name=TEXT,
        libraries={
            "type": "object",
            "additionalProperties": record(
                base=maybe(TEXT), attributes={"type": "object", "additionalProperties": TEXT}
            ),
        },
    ),
    "Parameters": {
        "type": "object",
        "additionalProperties": record(type=TEXT, default=ANYTHING, value=ANYTHING),
    },
    "Values": {"type": "object", "additionalProperties": ANYTHING},
    "Ontology": record(
        loaded=YES_NO,
        concepts=NUMBER,
        generation=NUMBER,
        prefixes={"type": "object", "additionalProperties": TEXT},
        files=array(TEXT),
    ),
    "Audited": record(
        number=NUMBER, at=TIME, author=TEXT, action=one_of(*ACTIONS), subject=TEXT, detail=TEXT
    ),
    "Tried": request(("events", "until"), library=TEXT, events=TEXT, until=maybe(TEXT)),
    "Played": record(
        diagnostics=array(ref("Diagnostic")),
        problems=array(record(line=NUMBER, problems=array(TEXT))),
        events=array(record(line=NUMBER, event=ref("Event"), seconds=REAL)),
        outputs=array(
            record(
                event=ref("Event"),
                seconds=REAL,
                why=TEXT,
                causes=array(record(part=TEXT, kind=CAUSE, number=maybe(NUMBER), seconds=REAL)),
            )
        ),
        waiting=array(record(rule=TEXT, key=maybe(TEXT), text=TEXT)),
        machines=array(record(rule=TEXT, **_DRAWN)),
        late=NUMBER,
    ),
    "WebhookOf": request(("kinds", "filter", "library", "correlation", "secret"), **_WEBHOOK),
    "Webhook": record(
        name=TEXT,
        author=TEXT,
        delivered=NUMBER,
        failures=NUMBER,
        problem=maybe(TEXT),
        position=NUMBER,
        **_WEBHOOK,
    ),
    "Figures": record(
        version=TEXT,
        demo=YES_NO,
        uptime=REAL,
        samples=array(
            record(
                at=REAL,
                median_ms=maybe(REAL),
                p99_ms=maybe(REAL),
                **dict.fromkeys(_SAMPLE_COUNTS, NUMBER),
            )
        ),
        **dict.fromkeys(
            ("position", "first_position", "events", "outputs", "late", "rejected",
             "duplicates", "expired", "waiting", "subscribers", "history_lag"),
            NUMBER,
        ),
    ),
    "Channel": record(
        name=TEXT, url=TEXT, clock=one_of("wall", "events"), lateness=TEXT,
        position=NUMBER, events=NUMBER, outputs=NUMBER, libraries=array(TEXT),
        links=array(ANYTHING),
    ),
    "Gateway": record(health=ANYTHING, status=ANYTHING, announced=ANYTHING),
    "Status": record(status=one_of("ok", "ready", "starting")),
}  # fmt: skip
