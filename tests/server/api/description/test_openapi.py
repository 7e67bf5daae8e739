"""The API against its own description: every route is described, and every description has a route.

Generated requests are sent by the hunt `generated-requests`, whose short run is in the suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.routing import Route

from ensue.server.api.app import routes
from ensue.server.api.description.openapi import openapi_document
from ensue.server.station.entries import KINDS
from tests.server.live import serving, settings


def test_every_route_is_described_and_every_description_has_a_route() -> None:
    described = {
        (method.upper(), path)
        for path, methods in msgspec.json.decode(openapi_document())["paths"].items()
        for method in methods
    }
    served = {
        (method, each.path.replace(":int}", "}"))
        for each in routes(with_console=False)
        if isinstance(each, Route)
        for method in (each.methods or set()) - {"HEAD"}
    }

    assert described == served


METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH")
CHOICES = {"severity", "form", "clock", "action"}
"""Members whose values are some words."""


def test_a_method_that_is_not_there_is_answered_with_all_that_are() -> None:
    paths = msgspec.json.decode(openapi_document())["paths"]
    with serving(settings()) as live:
        for path, described in paths.items():
            known = {each.upper() for each in described}
            wanted = known | ({"HEAD"} if "GET" in known else set())
            url = path.format(name="x", rule="y", version=1, position=1)
            for method in (*METHODS, "OPTIONS", "TRACE"):
                if method in wanted:
                    continue
                answer = live.client.request(method, url)
                allowed = set(answer.headers["Allow"].split(", "))
                assert (answer.status_code, allowed) == (405, wanted), (method, path)


def members(schema: Any) -> Iterator[tuple[str, Any]]:
    """The members of all records in a schema, by name."""
    if isinstance(schema, dict):
        yield from (schema.get("properties") or {}).items()
        for each in schema.values():
            yield from members(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from members(each)


def test_what_has_some_choices_lists_them() -> None:
    document = msgspec.json.decode(openapi_document())
    found = dict[str, Any]()
    for name, schema in members(document["components"]["schemas"]):
        if name in CHOICES or (name == "kind" and schema != {}):
            assert schema["enum"], name
            found[name] = schema["enum"]
    kinds = [
        each["schema"]["items"]["enum"]
        for operations in document["paths"].values()
        for operation in operations.values()
        for each in operation["parameters"]
        if each["name"] == "kinds"
    ]

    assert found.keys() == {*CHOICES, "kind"}
    assert kinds == [list(KINDS)] * 2
    problems = document["components"]["schemas"]["Problem"]["properties"]["type"]["enum"]
    assert "urn:ensue:problem:changed" in problems
    webhook = document["components"]["schemas"]["WebhookOf"]["properties"]["kinds"]
    assert webhook["items"]["enum"] == list(KINDS)
