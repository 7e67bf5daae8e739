"""Webhooks over HTTP. Their secrets are taken, and never given."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.conditions import expected_of, quoted, tagged
from ensue.server.api.requests.problems import ProblemError
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    body_of,
    channel_of,
    libraries_of,
    principal_of,
)
from ensue.server.station.preconditions import ChangedError
from ensue.server.station.rules.libraries import UnknownError
from ensue.server.webhooks.sending import Webhook, Webhooks, WebhookStatus


def _webhooks(request: Request) -> Webhooks:
    return channel_of(request).webhooks


def _shown(name: str, author: str, webhook: Webhook, standing: WebhookStatus) -> dict[str, Any]:
    said = msgspec.to_builtins(webhook)
    said["secret"] = None if webhook.secret is None else "set"
    return {"name": name, "author": author, **said, **msgspec.to_builtins(standing)}


async def listed(request: Request) -> Response:
    principal_of(request, "admin")
    Parameters(request, ())
    found = [_shown(name, *each) for name, each in _webhooks(request).listed().items()]
    return answered(found)


async def got(request: Request) -> Response:
    principal_of(request, "admin")
    Parameters(request, ())
    name = request.path_params["name"]
    found = _webhooks(request).listed().get(name)
    if found is None:
        raise UnknownError(f"there is no webhook `{name}`")
    return _answered(request, name)


async def put(request: Request) -> Response:
    principal = principal_of(request, "admin")
    Parameters(request, ())
    webhook = await body_of(request, Webhook)
    if webhook.library is not None:
        libraries_of(request).in_force(webhook.library)
    name = request.path_params["name"]
    await _changed(
        request, _webhooks(request).put(name, webhook, principal.name, expected_of(request))
    )
    return _answered(request, name)


async def deleted(request: Request) -> Response:
    principal = principal_of(request, "admin")
    Parameters(request, ())
    name = request.path_params["name"]
    await _changed(request, _webhooks(request).remove(name, principal.name, expected_of(request)))
    return Response(status_code=204)


def _answered(request: Request, name: str) -> Response:
    webhooks = _webhooks(request)
    answer = answered(_shown(name, *webhooks.listed()[name]))
    tag = webhooks.tag(name)
    return answer if tag is None else tagged(request, answer, tag)


async def _changed(request: Request, change: Awaitable[None]) -> None:
    """Wait for a change; where others were there before, the refusal has what stands now."""
    try:
        await change
    except ChangedError as error:
        webhooks, name = _webhooks(request), request.path_params["name"]
        found, tag = webhooks.listed().get(name), webhooks.tag(name)
        current = None if found is None else _shown(name, *found)
        headers = {} if tag is None else {"ETag": quoted(tag)}
        raise ProblemError(412, "changed", str(error), headers, current=current) from None
