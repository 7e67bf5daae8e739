"""A small library that the tests of this room share, and events for it."""

from __future__ import annotations

from typing import Any

from ensue.events.event import Event

LIBRARY = """
eventtype Login { attribute string user; attribute boolean ok; };
eventtype Reset { attribute string user; };
eventtype Alarm { attribute string user; };
Alarm correlation Break (Login bad where ok = false, Login good where ok = true, Reset r)
    l1:(bad ; bad ; good) | l2:r
    by user
{
    case l1: push new Alarm { user = good.user };
}
"""
SECOND = 1_000_000


def event(type_: str, id_: str, seconds: float, **data: Any) -> Event:
    return Event(id_, "test", type_, int(seconds * SECOND), data)


def login(id_: str, seconds: float, user: str, ok: bool) -> Event:
    return event("Login", id_, seconds, user=user, ok=ok)
