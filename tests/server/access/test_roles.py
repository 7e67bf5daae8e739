"""Who may do what: every operation of the API's description, in every channel, by every role."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from ensue.server.api.description.openapi import openapi_document
from ensue.server.settings.tables import ROLES
from tests.server.live import Live, serving, settings

PUBLIC = ("/health", "/ready", "/v1/openapi.json")
ALONE: dict[str, tuple[str, ...]] = {each: (each,) for each in ROLES}
PAIRS: dict[str, tuple[str, ...]] = {"rules-history": ("rules", "history")}
PREFIXES = ("", "/channels/main", "/channels/side")
OPERATIONS: list[tuple[str, str, frozenset[str]]] = [
    (method.upper(), path, frozenset(re.findall(r"`(\w+)`", operation.get("description", ""))))
    for path, methods in msgspec.json.decode(openapi_document())["paths"].items()
    for method, operation in methods.items()
]


def secret(name: str) -> str:
    return f"{name}-of-enough-characters"


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    tokens: list[dict[str, Any]] = [
        {"name": name, "roles": list(roles), "secret": secret(name)}
        for name, roles in (ALONE | PAIRS).items()
    ]
    tokens.append(
        {"name": "inside", "roles": ["admin"], "secret": secret("inside"), "channels": ("main",)}
    )
    with serving(settings(tokens=tokens, channels=[{"name": "side"}])) as running:
        yield running


@pytest.fixture(scope="module")
def client(live: Live) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=live.url, timeout=20) as made:
        yield made


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("method", "path", "needed"), OPERATIONS)
def test_an_operation_is_open_to_the_roles_that_it_names_and_to_no_other(
    client: httpx.Client, method: str, path: str, needed: frozenset[str], prefix: str
) -> None:
    def ask(who: str | None) -> httpx.Response:
        plain = path.format(position=1, version=1, name="x", rule="y")
        end = "?after=x" if (method, path) == ("GET", "/v1/events") else ""
        headers = {} if who is None else {"Authorization": f"Bearer {secret(who)}"}
        return client.request(method, f"{prefix}{plain}{end}", headers=headers)

    for who, roles in (ALONE | PAIRS).items():
        answer = ask(who)
        may = path in PUBLIC or "admin" in roles or needed <= set(roles)
        assert (answer.status_code != 403) is may, (who, answer.text)
        assert answer.status_code != 500
    for unknown in (None, "nobody"):
        assert ask(unknown).status_code == 401 or path in PUBLIC
    is_outside = prefix == "/channels/side"
    # A token that is known is kept to its channels, whatever it asks for.
    assert (ask("inside").status_code == 403) is is_outside


@pytest.mark.parametrize(
    "path",
    [
        "/channels/side/../main/v1/audit",
        "/channels/main/channels/side/v1/audit",
        "/channels//v1/audit",
        "/channels/side%2fv1/audit",
        "/channels/ma%69n/v1/audit/..",
        "//v1/audit",
        "/%2e/v1/audit",
        "/V1/audit",
        "/v1%2faudit",
        "/v1/audit%00",
        "/v1/audit;x",
        "/metrics/../v1/audit",
        "/console/../v1/audit",
        "/console/..%2f..%2fserving.py",
    ],
)
def test_no_spelling_of_a_path_goes_past_the_gate(live: Live, path: str) -> None:
    host, port = live.process.address or ("", 0)
    for who in (None, "publish", *(["inside"] if "side" in path else [])):
        connection = http.client.HTTPConnection(host, port, timeout=10)
        headers = {} if who is None else {"Authorization": f"Bearer {secret(who)}"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert answer.status in (400, 401, 403, 404), (who, answer.status)
        assert b'"author"' not in body
