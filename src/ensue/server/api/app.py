"""The ASGI application: routes, the gate before them, and problems for what they raise."""

from __future__ import annotations

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


async def described(_: Request) -> Response:
    """The description of this API."""
    return Response(openapi_document(), media_type="application/json")


def routes(with_console: bool) -> list[BaseRoute]:
    library = "/v1/libraries/{name}"
    rule = library + "/rules/{rule}"
    found: list[BaseRoute] = [
        Route("/v1/events", publishing.publish, methods=["POST"]),
        Route("/v1/events", subscribing.events, methods=["GET"]),
        WebSocketRoute("/v1/events/socket", subscribing.socket),
        Route("/v1/events/socket", subscribing.socket_wanted, methods=["GET"]),
        WebSocketRoute("/v1/events", subscribing.bare_socket),
        Route("/v1/libraries", libraries.listed, methods=["GET"]),
        Route(library, libraries.got, methods=["GET"]),
        Route(library, libraries.put, methods=["PUT"]),
        Route(library, libraries.deleted, methods=["DELETE"]),
        Route(library + "/versions", versions.versions, methods=["GET"]),
        Route(library + "/versions/{version:int}", versions.version, methods=["GET"]),
        Route(library + "/difference", versions.between, methods=["GET"]),
        Route(library + "/difference", versions.proposed, methods=["POST"]),
        Route(library + "/enable", libraries.enabled, methods=["POST"]),
        Route(library + "/disable", libraries.disabled, methods=["POST"]),
        Route(library + "/rollback", libraries.rolled_back, methods=["POST"]),
        Route(library + "/dry-run", libraries.tried, methods=["POST"]),
        Route("/v1/rules", rules.listed, methods=["GET"]),
        Route(rule, rules.one, methods=["GET"]),
        Route(rule + "/why", rules.why, methods=["GET"]),
        Route("/v1/history", history.history, methods=["GET"]),
        Route("/v1/outputs", history.outputs, methods=["GET"]),
        Route("/v1/outputs/{position:int}", history.output, methods=["GET"]),
        Route("/v1/outputs/{position:int}/why", history.why, methods=["GET"]),
        Route("/v1/filter", filters.names, methods=["GET"]),
        Route("/v1/types", types.types, methods=["GET"]),
        Route("/v1/ontology", types.ontology, methods=["GET"]),
        Route("/v1/ontology/reload", types.ontology_read, methods=["POST"]),
        Route("/v1/audit", audit.audit, methods=["GET"]),
        Route("/v1/playground", playground.play, methods=["POST"]),
        Route("/v1/webhooks", webhooks.listed, methods=["GET"]),
        Route("/v1/webhooks/{name}", webhooks.got, methods=["GET"]),
        Route("/v1/webhooks/{name}", webhooks.put, methods=["PUT"]),
        Route("/v1/webhooks/{name}", webhooks.deleted, methods=["DELETE"]),
        Route("/v1/figures", figures.figures, methods=["GET"]),
        Route("/v1/gateways", channels.gateways, methods=["GET"]),
        Route("/v1/channels", channels.channels, methods=["GET"]),
        Route("/v1/openapi.json", described, methods=["GET"]),
        Route("/metrics", status.metrics, methods=["GET"]),
        Route("/health", status.health, methods=["GET"]),
        Route("/ready", status.ready, methods=["GET"]),
    ]
    if with_console:
        found += [
            Route("/", console.page, methods=["GET"]),
            Route("/console/{file:path}", console.file, methods=["GET"]),
        ]
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
    return app
