"""What answers from the moment that the port is open: first that the server starts, then the API.

After a kill the journal is read again, which may take a while; meanwhile a caller is told so, with
how far it is, rather than refused a connection. `/health` says that the process is alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ensue.server.api.requests.gate import refuse, with_headers
from ensue.server.api.requests.problems import ProblemError
from ensue.server.channels.hosting import OpeningStep

RETRY_SECONDS: Final = 1


class OpeningApplication:
    """An ASGI application that hands everything on to `app`, once it is set."""

    def __init__(self, step: Callable[[], OpeningStep | None], is_tls: bool) -> None:
        self.app: ASGIApp | None = None
        self._step = step
        self._is_tls = is_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.app is not None:
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == "/health":
            alive = Response(b'{"status":"starting"}', media_type="application/json")
            await alive(scope, receive, with_headers(send, self._is_tls))
        elif scope["type"] in ("http", "websocket"):
            await refuse(self._starting(), scope, receive, send)

    def _starting(self) -> ProblemError:
        step = self._step()
        detail = "the server starts, and reads its journal again"
        progress: dict[str, object] = {"channel": None, "done": 0, "total": 0}
        if step is not None and step.total:
            detail += (
                f": {step.done:,} of {step.total:,} entries of channel `{step.channel}`"
                f" ({step.done * 100 // step.total} %)"
            )
            progress = step._asdict()
        return ProblemError(
            503,
            "starting",
            f"{detail}; try again in {RETRY_SECONDS} s",
            {"Retry-After": str(RETRY_SECONDS)},
            progress=progress,
        )
