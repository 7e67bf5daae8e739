"""Webhooks over HTTP. Their secrets are taken, and never given."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    body_of,
    channel_of,
    libraries_of,
    principal_of,
)
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


async def put(request: Request) -> Response:
    principal = principal_of(request, "admin")
    Parameters(request, ())
    webhook = await body_of(request, Webhook)
    if webhook.library is not None:
        libraries_of(request).in_force(webhook.library)
    name = request.path_params["name"]
    webhooks = _webhooks(request)
    await webhooks.put(name, webhook, principal.name)
    answer = _shown(name, *webhooks.listed()[name])
    return answered(answer)


async def deleted(request: Request) -> Response:
    principal = principal_of(request, "admin")
    Parameters(request, ())
    await _webhooks(request).remove(request.path_params["name"], principal.name)
    return Response(status_code=204)
