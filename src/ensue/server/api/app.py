"""The ASGI application: routes, the gate before them, and problems for what they raise."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from ensue.errors import EnsueError
from ensue.server.access.tokens import Tokens
from ensue.server.api import console, status
from ensue.server.api.description.openapi import openapi_document
from ensue.server.api.requests import problems
from ensue.server.api.requests.gate import RequestGate
from ensue.server.api.requests.turns import QuestionTurns
from ensue.server.api.v1 import (
    audit,
    channels,
    figures,
    filters,
    history,
    libraries,
    playground,
    rules,
    types,
    versions,
    webhooks,
)
from ensue.server.api.v1.events import publishing, subscribing
from ensue.server.channels.hosting import Channels
from ensue.server.logs.requests import AnswerCounts
from ensue.server.settings import Settings

Endpoint = Callable[[Request], Awaitable[Response]]


async def described(_: Request) -> Response:
    """The description of this API."""
    return Response(openapi_document(), media_type="application/json")


def _at(path: str, **methods: Endpoint) -> Route:
    """All methods of one path in one route, so that a refusal of another can name them all."""

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" and "HEAD" not in methods else request.method
        return await methods[method](request)

    return Route(path, endpoint, methods=list(methods))


def routes(with_console: bool) -> list[BaseRoute]:
    library = "/v1/libraries/{name}"
    rule = library + "/rules/{rule}"
    found: list[BaseRoute] = [
        WebSocketRoute("/v1/events/socket", subscribing.socket),
        WebSocketRoute("/v1/events", subscribing.bare_socket),
        _at("/v1/events", POST=publishing.publish, GET=subscribing.events),
        _at("/v1/events/socket", GET=subscribing.socket_wanted),
        _at("/v1/libraries", GET=libraries.listed),
        _at(library, GET=libraries.got, PUT=libraries.put, DELETE=libraries.deleted),
        _at(library + "/versions", GET=versions.versions),
        _at(library + "/versions/{version:int}", GET=versions.version),
        _at(library + "/difference", GET=versions.between, POST=versions.proposed),
        _at(
            library + "/parameters",
            GET=libraries.parameters,
            PUT=libraries.parameters_set,
            POST=versions.proposed_values,
        ),
        _at(library + "/enable", POST=libraries.enabled),
        _at(library + "/disable", POST=libraries.disabled),
        _at(library + "/rollback", POST=libraries.rolled_back),
        _at(library + "/dry-run", POST=libraries.tried),
        _at("/v1/rules", GET=rules.listed),
        _at(rule, GET=rules.one),
        _at(rule + "/why", GET=rules.why),
        _at("/v1/history", GET=history.history),
        _at("/v1/outputs", GET=history.outputs),
        _at("/v1/outputs/{position:int}", GET=history.output),
        _at("/v1/outputs/{position:int}/why", GET=history.why),
        _at("/v1/filter", GET=filters.names),
        _at("/v1/types", GET=types.types),
        _at("/v1/ontology", GET=types.ontology),
        _at("/v1/ontology/reload", POST=types.ontology_read),
        _at("/v1/audit", GET=audit.audit),
        _at("/v1/playground", POST=playground.play),
        _at("/v1/webhooks", GET=webhooks.listed),
        _at("/v1/webhooks/{name}", GET=webhooks.got, PUT=webhooks.put, DELETE=webhooks.deleted),
        _at("/v1/figures", GET=figures.figures),
        _at("/v1/gateways", GET=channels.gateways),
        _at("/v1/channels", GET=channels.channels),
        _at("/v1/openapi.json", GET=described),
        _at("/metrics", GET=status.metrics),
        _at("/health", GET=status.health),
        _at("/ready", GET=status.ready),
    ]
    if with_console:
        found += [_at("/", GET=console.page), _at("/console/{file:path}", GET=console.file)]
    return found


def application(settings: Settings, hosted: Channels, gateway: Any = None) -> Starlette:
    """The application over channels that are open."""
    told = (problems.ProblemError, EnsueError, HTTPException, ClientDisconnect, Exception)
    handlers: dict[Any, Any] = dict.fromkeys(told, problems.answer)
    tokens = Tokens(settings.tokens, settings.limits.requests_per_second)

    def retoken(changed: Settings) -> None:
        """Take the tokens of settings that were read again."""
        tokens.take(changed.tokens)

    app = Starlette(
        routes=routes(settings.server.console),
        exception_handlers=handlers,
        middleware=[Middleware(RequestGate, settings=settings, tokens=tokens)],
    )
    app.state.channels = hosted
    app.state.retoken = retoken
    app.state.gateway = gateway
    app.state.is_ready = False
    app.state.turns = QuestionTurns()
    app.state.limits = settings.limits
    app.state.refused_logins = tokens.refused
    app.state.answers = AnswerCounts()
    app.state.started = time.time()
    return app
