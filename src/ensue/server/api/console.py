"""The files of the console, from the package: one page, its styles, its modules, an icon."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.problems import ProblemError

KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def _contents() -> dict[str, bytes]:
    """All files, by name: what a request names is only looked up, and never a path."""
    return dict(_files("", files("ensue.server") / "console"))


def _files(path: str, folder: Traversable) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files(f"{path}{each.name}/", each)
        elif each.name.rpartition(".")[2] in KINDS:
            yield path + each.name, each.read_bytes()


async def page(_: Request) -> Response:
    return _response("index.html")


async def file(request: Request) -> Response:
    return _response(request.path_params["file"])


def _response(name: str) -> Response:
    content = _contents().get(name)
    if content is None:
        raise ProblemError(404, "unknown", f"the console has no file `{name[:100]}`")
    kind = KINDS[name.rpartition(".")[2]]
    return Response(content, headers={"Content-Type": kind, "Cache-Control": "no-cache"})
