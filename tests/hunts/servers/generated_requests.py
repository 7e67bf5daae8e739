"""Requests that are generated from the description of the API get answers that it allows.

A round draws some requests for every operation, in two channels of one server, and compares status,
content type and body of every answer with the description.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import hypothesis
import msgspec
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from ensue.server.api.description.openapi import openapi_document
from tests.server.live import Live, reading, serving, settings

SHORT = (1,)
EXAMPLES = 4
"""Requests of one operation in one round."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
STREAM = ("GET", "/v1/events")
"""Its answer does not end, so that only refusals of it are looked at."""
PREFIXES = ("", "/channels/side")


@contextmanager
def filled() -> Iterator[Live]:
    """A server of two channels with libraries, events and outputs."""
    with serving(settings(query_seconds=2.0, channels=[{"name": "side"}])) as live:
        for prefix in PREFIXES:
            live.client.base_url = httpx.URL(live.url + prefix)
            live.put()
            live.put(name="a")
            live.publish([reading(n, "s", 20 if n % 2 else 70) for n in range(20)])
        yield live


def ask(live: Live, case: Any) -> int:
    """Send a request to each channel, and compare the answers; how many there were."""
    if (case.method, case.path) == STREAM:
        case.query = {**(case.query or {}), "after": "x"}
    if case.path == "/v1/webhooks/{name}" and isinstance(case.body, dict):
        # No request is to look for hosts outside.
        case.body = {**case.body, "url": "http://127.0.0.1/"}
    for prefix in PREFIXES:
        live.client.base_url = httpx.URL(live.url + prefix)
        if case.path.startswith("/v1/libraries/"):
            # Another request may have deleted it.
            live.put(name="a")
        case.call_and_validate(base_url=live.url + prefix, checks=CHECKS, timeout=20)
    return len(PREFIXES)


def hunt(seed: int, examples: int = EXAMPLES) -> Mapping[str, int]:
    found = schemathesis.openapi.from_dict(
        msgspec.json.decode(openapi_document()), config=SchemathesisConfig()
    )
    listed: list[Any] = list(found.get_all_operations())
    operations = [each.ok() for each in listed]
    counted = {"operations": len(operations), "answers": 0}
    with filled() as live:

        def play(case: Any) -> None:
            counted["answers"] += ask(live, case)

        for operation in operations:
            drawn = hypothesis.given(case=operation.as_strategy())(play)
            bounded = hypothesis.settings(
                max_examples=examples,
                deadline=None,
                database=None,
                phases=(Phase.explicit, Phase.generate),
                suppress_health_check=list(HealthCheck),
            )(drawn)
            hypothesis.seed(seed)(bounded)()
    return counted
