"""The API against its own description: every route is described, and generated requests get
answers that the description allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from starlette.routing import Route

from ensue.server.api.app import routes
from ensue.server.api.description.openapi import openapi_document
from tests.server.live import Live, reading, serving
from tests.server.live import settings as server_settings

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
STREAM = ("GET", "/v1/events")
"""Its answer does not end, and is tested in `test_subscribing`."""

PREFIXES = ("", "/channels/side")

schema = schemathesis.openapi.from_dict(
    msgspec.json.decode(openapi_document()), config=SchemathesisConfig()
)


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    given = server_settings(query_seconds=2.0, channels=[{"name": "side"}])
    with serving(given) as running:
        for prefix in PREFIXES:
            running.client.base_url = httpx.URL(running.url + prefix)
            running.put()
            running.put(name="a")
            running.publish([reading(n, "s", 20 if n % 2 else 70) for n in range(20)])
        yield running


def test_every_route_is_described_and_every_description_has_a_route() -> None:
    described = {
        (method.upper(), path.replace("{position}", "{position:int}"))
        for path, methods in msgspec.json.decode(openapi_document())["paths"].items()
        for method in methods
    }
    served = {
        (method, each.path)
        for each in routes(with_console=False)
        if isinstance(each, Route)
        for method in (each.methods or set()) - {"HEAD"}
    }

    assert described == served


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_generated_requests_get_described_answers(case: Any, live: Live) -> None:
    if (case.method, case.path) == STREAM:
        case.query = {**(case.query or {}), "after": "x"}
    if case.path == "/v1/webhooks/{name}" and isinstance(case.body, dict):
        # No request is to look for hosts outside.
        case.body = {**case.body, "url": "http://127.0.0.1/"}
    for prefix in PREFIXES:
        live.client.base_url = httpx.URL(live.url + prefix)
        if not live.client.get("/v1/libraries/a").is_success:
            live.put(name="a")
        case.call_and_validate(base_url=live.url + prefix, checks=CHECKS, timeout=20)
