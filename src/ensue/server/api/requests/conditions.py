"""Conditional requests (RFC 9110, 13): tags of answers, and what a change expects.

Out goes `ETag`; in come `If-Match` and `If-None-Match`. A tag is of what is configured, a text or
the settings of a webhook: what is only counted beside it in an answer does not change the tag.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.reading import refused
from ensue.server.station.preconditions import ALWAYS, ANY, Precondition

TAG: Final = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(,|$)')


def expected_of(request: Request) -> Precondition:
    """What a change may be made to. Refuses what is no list of tags."""
    wanted = _tags(request, "if-match")
    if "if-none-match" not in request.headers:
        return ALWAYS if wanted is None else Precondition(wanted)
    if wanted is not None or _tags(request, "if-none-match") != ANY:
        raise refused(
            "of `If-None-Match` a change can have only `*`, alone: nothing is to be there yet; to"
            " change what you have seen, send its tag as `If-Match`"
        )
    return Precondition(is_new=True)


def _tags(request: Request, name: str) -> frozenset[str] | None:
    lines = request.headers.getlist(name)
    if not lines:
        return None
    text = ", ".join(lines).strip()
    if text == "*":
        return ANY
    found: set[str] = set()
    at = 0
    while at < len(text):
        match = TAG.match(text, at)
        if match is None:
            shown = "If-Match" if name == "if-match" else "If-None-Match"
            raise refused(
                f"`{shown}` is a list of tags in quotation marks, as an `ETag` has them, or `*`;"
                f" given is `{text[:100]}`"
            )
        # A weak tag does not tell two states apart for certain, so it never matches.
        if not (match[1] and name == "if-match"):
            found.add(match[2])
        at = match.end()
    return frozenset(found)


def quoted(tag: str) -> str:
    """A tag as `ETag` and `If-Match` have it."""
    return f'"{tag}"'


def tagged(request: Request, answer: Response, tag: str) -> Response:
    """An answer with its tag; without content (304) where a reader has what it is of."""
    if request.method == "GET":
        known = _tags(request, "if-none-match")
        if known is not None and (known == ANY or tag in known):
            return Response(status_code=304, headers={"ETag": quoted(tag)})
    answer.headers["ETag"] = quoted(tag)
    return answer
