"""Problem documents (RFC 9457): every refusal as JSON, with what was wrong and what to do.

In comes whatever a route raises; out goes a response of `application/problem+json`. `type` is a
stable name, `detail` a sentence that says what to do; `problems`, `diagnostics` and `parameters`
list all that was found. An unexpected error is logged with its traceback, and answered without it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ensue.errors import (
    EnsueError,
    EventError,
    HistoryError,
    LibraryError,
    LimitError,
    OntologyError,
    UsageError,
)
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.expanding.parameters import ParameterError
from ensue.server.logs.requests import REQUEST
from ensue.server.station.feed import GoneError
from ensue.server.station.line import BusyError
from ensue.server.station.preconditions import ChangedError
from ensue.server.station.rules.libraries import LimitedError, UnknownError

MEDIA_TYPE: Final = "application/problem+json"
PREFIX: Final = "urn:ensue:problem:"
NAMES: Final = (
    "batch", "body", "busy", "changed", "channel", "connections", "content-encoding", "event",
    "failing", "gone", "head", "history", "host", "http", "internal", "json", "library", "limit",
    "media-type", "not-ready", "ontology", "origin", "parameter", "position", "query", "rate",
    "replay", "request", "role", "starting", "subject", "token", "unknown", "usage", "websocket",
)  # fmt: skip
"""The last parts of `type`: what callers may tell problems apart by."""
TITLES: Final = {
    400: "the request cannot be understood",
    401: "a token is needed",
    403: "not allowed",
    404: "not found",
    405: "no such method here",
    406: "no such form of answer",
    409: "in conflict with what is there",
    410: "no longer here",
    411: "the length is missing",
    412: "no longer as it was",
    413: "too large",
    415: "no such form of request",
    421: "not called by its name",
    422: "cannot be used",
    426: "a WebSocket is needed",
    429: "too much at once",
    431: "the head is too large",
    500: "a mistake of the server",
    503: "not now",
}

log = logging.getLogger("ensue.server")


class ProblemError(Exception):
    """A refusal with its status. `name` is the last part of `type`."""

    def __init__(
        self,
        status: int,
        name: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        self.status = status
        self.name = name
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more
        super().__init__(detail)


def document(status: int, name: str, detail: str, **more: Any) -> bytes:
    members = {
        "type": f"{PREFIX}{name}",
        "title": TITLES.get(status, "a problem"),
        "status": status,
        "detail": detail,
        **more,
    }
    return msgspec.json.encode(members)


def response_of(problem: ProblemError) -> Response:
    body = document(problem.status, problem.name, problem.detail, **problem.more)
    return Response(body, problem.status, problem.headers, MEDIA_TYPE)


def as_problem(error: Exception) -> ProblemError:
    """The problem document that answers a request which has raised an error."""
    match error:
        case ProblemError():
            return error
        case BusyError():
            headers = {"Retry-After": str(error.seconds)}
            return ProblemError(429, "busy", str(error), headers)
        case LibraryError():
            return ProblemError(
                422,
                "library",
                "the text has errors: correct each of `diagnostics`, and put it again",
                diagnostics=[diagnostic(each) for each in error.diagnostics],
            )
        case EventError():
            return ProblemError(
                422, "event", "the event cannot be read: see `problems`", problems=error.problems
            )
        case OntologyError():
            return ProblemError(
                422, "ontology", "the ontology cannot be used: see `problems`",
                problems=error.problems,
            )  # fmt: skip
        case GoneError():
            return ProblemError(410, "gone", str(error))
        case UnknownError():
            return ProblemError(404, "unknown", str(error))
        case LimitedError():
            return ProblemError(422, "limit", str(error), limit=error.limit)
        case LimitError():
            return ProblemError(422, "limit", str(error), limit=error.name)
        case HistoryError():
            return ProblemError(503, "history", str(error), {"Retry-After": "2"})
        case ChangedError():
            return ProblemError(412, "changed", str(error))
        case ParameterError():
            return ProblemError(422, "usage", str(error), parameters=error.problems)
        case UsageError() | EnsueError():
            return ProblemError(422, "usage", str(error))
        case ClientDisconnect():
            return ProblemError(400, "body", "the connection was closed before the body was whole")
        case HTTPException():
            detail = error.detail
            if error.status_code == 404:
                detail = "there is nothing at this address: `/v1/openapi.json` lists what there is"
            elif error.status_code == 405:
                allowed = (error.headers or {}).get("Allow", "")
                detail = f"the method is not allowed here; allowed: {allowed}"
            return ProblemError(error.status_code, "http", detail, error.headers)
    log.error("a request failed", exc_info=error)
    return ProblemError(
        500,
        "internal",
        "this is a mistake in ensue itself; the log of the server has the details, at the id of the"
        " request: report it",
        instance=f"urn:ensue:request:{REQUEST.get()}",
    )


async def answer(_: Request, error: Exception) -> Response:
    return response_of(as_problem(error))


def diagnostic(found: Diagnostic) -> dict[str, Any]:
    return {
        "severity": found.severity,
        "code": found.code,
        "message": found.message,
        "line": found.line,
        "column": found.column,
        "width": found.width,
        "text": found.text,
        "hint": found.hint,
        "shown": str(found),
    }
