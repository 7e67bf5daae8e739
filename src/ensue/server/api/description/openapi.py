"""The OpenAPI description of the API: paths, parameters, and which problems each can answer.

Written as data beside the routes; a test compares its paths with them, and another sends generated
requests to every operation and compares the answers with what stands here.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from ensue.server.api.description import schemas as s
from ensue.server.api.description.schemas import SCHEMAS, Schema, array, ref
from ensue.version import __version__

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
NAME: Final = "^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
COMMON: Final = (400, 401, 403, 415, 421, 429)
"""What any request may be answered with."""


def _query(name: str, schema: Schema, words: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": words}


def _joined(name: str, of: Schema, words: str) -> dict[str, Any]:
    """A parameter of several values with commas between them."""
    return {**_query(name, array(of), words), "style": "form", "explode": False}


def _header(name: str, words: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": s.TEXT, "description": words}


def _path(name: str, schema: Schema, words: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": words}


LIBRARY: Final = _path("name", {"type": "string", "pattern": NAME}, "the name of a library")
RULE: Final = _path("rule", {"type": "string", "minLength": 1}, "the name of a rule of it")
WEBHOOK: Final = _path("name", {"type": "string", "pattern": NAME}, "the name of a webhook")
VERSION: Final = _path(
    "version", {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}, "a version of it"
)
NOTE: Final = _query("note", {"type": "string", "maxLength": 1_000}, "why it was changed")
IF_MATCH: Final = _header("If-Match", "the `ETag` of what is changed; 412 where others were first")
IF_NONE_MATCH: Final = _header("If-None-Match", "`*`: only if nothing is there yet, else 412")
FILTER: Final = _query("filter", s.TEXT, "CESQL over one event, temporal terms included")
LIMIT: Final = _query(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": 10_000},
    "how many at most; 100 if left out",
)
BEFORE: Final = _query(
    "before", {"type": "integer", "minimum": 0, "maximum": 2**62}, "only what stands before this"
)
SINCE: Final = _query("since", s.TIME, "the first time that counts")
UNTIL: Final = _query("until", s.TIME, "the first time that no longer counts")
SEARCH: Final = _query("search", s.TEXT, "a text somewhere in it, whatever its case")
SUBSCRIPTION: Final = [
    FILTER,
    _joined("kinds", s.KIND, "what is wanted, joined by commas"),
    _joined("library", s.TEXT, "only outputs of these libraries, joined by commas"),
    _joined("correlation", s.TEXT, "only outputs of these rules, joined by commas"),
    _query("rules", s.TEXT, "a library of one's own: its outputs are given"),
    _query("after", s.TEXT, "the id that was received last; `Last-Event-ID` says the same"),
]


def _body(schema: Schema, *kinds: str) -> dict[str, Any]:
    return {"required": True, "content": {each: {"schema": schema} for each in kinds}}


def _tagged(status: int, schema: Schema, words: str = "done") -> Any:
    """As `_given`, with the tag of what is configured."""
    headers = {"ETag": {"schema": s.TEXT, "description": "changes with what is configured"}}
    given = _given(status, schema, words=words)
    given[str(status)]["headers"] = headers
    return given


def _given(status: int, schema: Schema | None, kind: str = JSON, words: str = "done") -> Any:
    if schema is None:
        return {str(status): {"description": words}}
    return {str(status): {"description": words, "content": {kind: {"schema": schema}}}}


IF_NEW: Final = _header("If-None-Match", "a known `ETag`: 304 where nothing is new")
UNCHANGED: Final = {"304": {"description": "as the reader knows it"}}


def _operation(
    words: str,
    given: dict[str, Any],
    *parameters: Any,
    body: Any = None,
    problems: tuple[int, ...] = (),
    role: str = "",
) -> dict[str, Any]:
    refused = {
        str(each): {
            "description": "a problem",
            "content": {PROBLEM: {"schema": ref("Problem")}},
        }
        for each in (*COMMON, *problems)
    }
    operation: dict[str, Any] = {
        "summary": words,
        "responses": {**given, **refused},
        "parameters": list(parameters),
    }
    if role:
        operation["description"] = f"Needs the role `{role}`."
    if body is not None:
        operation["requestBody"] = body
    return operation


def _publishing() -> dict[str, Any]:
    event, events = ref("Event"), array(ref("Event"))
    return {
        "required": True,
        "content": {
            "application/cloudevents+json": {"schema": event},
            "application/cloudevents-batch+json": {"schema": events},
            JSON: {"schema": {"anyOf": [event, events]}},
        },
    }


def paths() -> dict[str, Any]:
    """Every path with its operations."""
    library = "/v1/libraries/{name}"
    rule = library + "/rules/{rule}"
    change, unusable = _tagged(200, ref("Change")), (404, 413, 422, 503)
    return {
        "/v1/events": {
            "post": _operation(
                "Publish events: binary, structured or batched CloudEvents, or JSON lines",
                _given(200, ref("Published"), words="kept, and read by every rule"),
                body=_publishing(),
                problems=(413, 422, 503),
                role="publish",
            ),
            "get": _operation(
                "Subscribe by server-sent events; `/v1/events/socket` is the same as a WebSocket",
                _given(200, s.TEXT, "text/event-stream", "a stream that goes on"),
                *SUBSCRIPTION,
                problems=(404, 409, 410, 422),
                role="subscribe",
            ),
        },
        "/v1/events/socket": {
            "get": _operation(
                "Subscribe by a WebSocket: one JSON text for each delivery, with its id and kind",
                _given(101, None, words="the connection becomes a WebSocket"),
                *SUBSCRIPTION,
                problems=(426,),
                role="subscribe",
            ),
        },
        "/v1/libraries": {
            "get": _operation(
                "List the libraries in force", _given(200, array(ref("Summary"))), role="rules"
            )
        },
        library: {
            "get": _operation(
                "Get a library with its text",
                {**_tagged(200, ref("Library")), **UNCHANGED},
                LIBRARY,
                IF_NEW,
                problems=(404,),
                role="rules",
            ),
            "put": _operation(
                "Put a text in force, at once; unchanged rules keep their state",
                {**change, **_tagged(201, ref("Change"), words="a new library")},
                LIBRARY,
                NOTE,
                IF_MATCH,
                IF_NONE_MATCH,
                body=_body(s.TEXT, "text/plain"),
                problems=(412, *unusable),
                role="rules",
            ),
            "delete": _operation(
                "Take a library out of force; its versions are kept",
                _given(204, None),
                LIBRARY,
                NOTE,
                IF_MATCH,
                problems=(404, 412, 503),
                role="rules",
            ),
        },
        library + "/parameters": {
            "get": _operation(
                "Get the parameters of a library: types, defaults and values",
                _given(200, ref("Parameters")),
                LIBRARY,
                problems=(404,),
                role="rules",
            ),
            "put": _operation(
                "Put other values of parameters in force; unchanged rules keep their state",
                change,
                LIBRARY,
                NOTE,
                IF_MATCH,
                body=_body(ref("Values")),
                problems=(404, 412, *unusable),
                role="rules",
            ),
            "post": _operation(
                "Tell what values of parameters would change if they were put; changes nothing",
                _tagged(200, ref("Difference")),
                LIBRARY,
                body=_body(ref("Values")),
                problems=(404, 413, 422),
                role="rules",
            ),
        },
        library + "/versions": {
            "get": _operation(
                "List the versions of a library, the latest first",
                _given(200, array(ref("Version"))),
                LIBRARY,
                _query("limit", VERSION["schema"], "how many at most; all if left out"),
                _query("before", VERSION["schema"], "only versions before this one"),
                problems=(404,),
                role="rules",
            )
        },
        library + "/versions/{version}": {
            "get": _operation(
                "Get a version with its text",
                _given(200, ref("Version")),
                LIBRARY,
                VERSION,
                problems=(404,),
                role="rules",
            )
        },
        library + "/difference": {
            "get": _operation(
                "Compare two versions, line by line and rule by rule",
                _given(200, ref("Difference")),
                LIBRARY,
                _query("from", VERSION["schema"], "the one before `to` if left out"),
                _query("to", VERSION["schema"], "the one in force if left out"),
                problems=(404,),
                role="rules",
            ),
            "post": _operation(
                "Tell what a text would change if it were put; changes nothing",
                _tagged(200, ref("Difference")),
                LIBRARY,
                body=_body(s.TEXT, "text/plain"),
                problems=(413, 422),
                role="rules",
            ),
        },
        **{
            f"{library}/{word}": {
                "post": _operation(
                    f"{word.capitalize()} a library",
                    change,
                    LIBRARY,
                    NOTE,
                    IF_MATCH,
                    problems=(404, 412, 422, 503),
                    role="rules",
                )
            }
            for word in ("enable", "disable")
        },
        library + "/rollback": {
            "post": _operation(
                "Put an earlier version in force again",
                change,
                LIBRARY,
                IF_MATCH,
                body=_body(ref("RollBack"), JSON),
                problems=(412, *unusable),
                role="rules",
            )
        },
        library + "/dry-run": {
            "post": _operation(
                "Try a text over the history: how often, on which keys, and what differs",
                _given(200, ref("DryRun")),
                LIBRARY,
                body=_body(ref("DryRunOf"), JSON),
                problems=unusable,
                role="rules` and `history",
            )
        },
        "/v1/rules": {
            "get": _operation(
                "List the rules that run, with their counts",
                _given(200, array(ref("RuleCount"))),
                role="rules",
            )
        },
        rule: {
            "get": _operation(
                "Get a rule: its machine as SVG, and how many keys stand in each state",
                _given(200, ref("Rule")),
                LIBRARY,
                RULE,
                problems=(404,),
                role="rules",
            )
        },
        rule + "/why": {
            "get": _operation(
                "Tell why a rule has not fired, for a key or for those that came nearest",
                _given(200, ref("Reasons")),
                LIBRARY,
                RULE,
                _query("key", s.TEXT, "the key, as `partitionkey` says it"),
                _query(
                    "events",
                    {"type": "integer", "minimum": 1, "maximum": 500_000},
                    "how many of the latest events are read again",
                ),
                problems=(404, 422),
                role="rules` and `history",
            )
        },
        "/v1/history": {
            "get": _operation(
                "Find published events, in the order of their times or the latest first",
                _given(200, ref("Found")),
                FILTER,
                SINCE,
                UNTIL,
                LIMIT,
                _query(
                    "order",
                    {"type": "string", "enum": ["time", "latest"]},
                    "from the earliest time on, or from the latest; `time` if left out",
                ),
                SEARCH,
                _query("before", s.TEXT, "the `next` of an earlier answer: goes on from there"),
                problems=(422, 503),
                role="history",
            )
        },
        "/v1/outputs": {
            "get": _operation(
                "List what rules have put out, the latest first",
                _given(200, ref("Outputs")),
                _query("library", s.TEXT, "of this library"),
                _query("correlation", s.TEXT, "of this rule"),
                _query("key", s.TEXT, "for this key"),
                SINCE,
                UNTIL,
                SEARCH,
                BEFORE,
                LIMIT,
                problems=(404,),
                role="history",
            )
        },
        "/v1/outputs/{position}": {
            "get": _operation(
                "Open an output to the events that caused it",
                _given(200, ref("Opened")),
                _path("position", {"type": "integer", "minimum": 0}, "its position"),
                problems=(404,),
                role="history",
            )
        },
        "/v1/outputs/{position}/why": {
            "get": _operation(
                "Tell which events completed which parts of the rule, and made it put this out",
                _given(200, ref("OutputReason")),
                _path("position", {"type": "integer", "minimum": 0}, "its position"),
                _query(
                    "events",
                    {"type": "integer", "minimum": 1, "maximum": 500_000},
                    "how many of the events before it are read again",
                ),
                problems=(404, 422),
                role="rules` and `history",
            )
        },
        "/v1/filter": {
            "get": _operation(
                "Tell which attributes a filter names, and whether any event has them",
                _given(200, ref("FilterNames")),
                FILTER,
                problems=(422,),
                role="subscribe",
            )
        },
        "/v1/types": {
            "get": _operation("List the declared event types", _given(200, array(ref("Type"))))
        },
        "/v1/ontology": {
            "get": _operation(
                "Get the ontology", {**_tagged(200, ref("Ontology")), **UNCHANGED}, IF_NEW
            )
        },
        "/v1/ontology/reload": {
            "post": _operation(
                "Read the files of the ontology again",
                _tagged(200, ref("Ontology")),
                problems=(404, 422, 503),
                role="admin",
            )
        },
        "/v1/audit": {
            "get": _operation(
                "List changes of rules, the latest first",
                _given(200, array(ref("Audited"))),
                LIMIT,
                BEFORE,
                role="admin",
            )
        },
        "/v1/playground": {
            "post": _operation(
                "Run a text over some events in virtual time, and keep nothing",
                _given(200, ref("Played")),
                body=_body(ref("Tried"), JSON),
                problems=(413, 422),
                role="rules",
            )
        },
        "/v1/webhooks": {
            "get": _operation(
                "List webhooks, without their secrets",
                _given(200, array(ref("Webhook"))),
                role="admin",
            )
        },
        "/v1/webhooks/{name}": {
            "get": _operation(
                "Get a webhook, without its secret",
                {**_tagged(200, ref("Webhook")), **UNCHANGED},
                WEBHOOK,
                IF_NEW,
                problems=(404,),
                role="admin",
            ),
            "put": _operation(
                "Post what matches to a URL from now on",
                _tagged(200, ref("Webhook")),
                WEBHOOK,
                IF_MATCH,
                IF_NONE_MATCH,
                body=_body(ref("WebhookOf"), JSON),
                problems=(412, *unusable),
                role="admin",
            ),
            "delete": _operation(
                "Remove a webhook",
                _given(204, None),
                WEBHOOK,
                IF_MATCH,
                problems=(404, 412, 503),
                role="admin",
            ),
        },
        "/v1/figures": {
            "get": _operation(
                "Get the figures of the last minutes, second by second",
                _given(200, ref("Figures")),
                _query(
                    "seconds", {"type": "integer", "minimum": 1, "maximum": 900}, "how far back"
                ),
            )
        },
        "/v1/channels": {
            "get": _operation(
                "List the channels, each an API of its own under `url`",
                _given(200, array(ref("Channel"))),
            )
        },
        "/v1/gateways": {
            "get": _operation("Get the state of gateways", _given(200, array(ref("Gateway"))))
        },
        "/v1/openapi.json": {
            "get": _operation("Get this description", _given(200, {"type": "object"}))
        },
        "/metrics": {
            "get": _operation("Get metrics for Prometheus", _given(200, s.TEXT, "text/plain"))
        },
        "/health": {
            "get": _operation(
                "Tell whether it works", _given(200, ref("Status")), problems=(503,)
            )
        },
        "/ready": {
            "get": _operation(
                "Tell whether requests may come here", _given(200, ref("Status")), problems=(503,)
            )
        },
    }  # fmt: skip


@cache
def openapi_document() -> bytes:
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Ensue",
                "version": __version__,
                "description": "Publish events, run rules over them, subscribe to what follows.",
            },
            "servers": [
                {"url": "/", "description": "the channel `main`"},
                {
                    "url": "/channels/{channel}",
                    "description": "another channel",
                    "variables": {"channel": {"default": "main"}},
                },
            ],
            "security": [{}, {"bearer": []}],
            "paths": paths(),
            "components": {
                "schemas": SCHEMAS,
                "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            },
        }
    )
