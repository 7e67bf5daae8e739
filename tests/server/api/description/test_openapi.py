"""The API against its own description: every route is described, and every description has a route.

Generated requests are sent by the hunt `generated-requests`, whose short run is in the suite.
"""

from __future__ import annotations

import msgspec
from starlette.routing import Route

from ensue.server.api.app import routes
from ensue.server.api.description.openapi import openapi_document


def test_every_route_is_described_and_every_description_has_a_route() -> None:
    described = {
        (method.upper(), path)
        for path, methods in msgspec.json.decode(openapi_document())["paths"].items()
        for method in methods
    }
    served = {
        (method, each.path.replace(":int}", "}"))
        for each in routes(with_console=False)
        if isinstance(each, Route)
        for method in (each.methods or set()) - {"HEAD"}
    }

    assert described == served
