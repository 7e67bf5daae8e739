"""Bearer tokens: the caller, its roles, and its subjects.

In comes the `Authorization` of a request; out goes a `Principal`, or `None` for a token that is not
known. Where no token is configured, which only loopback and `open` servers may do, everybody is
`anyone` with all roles. A token is compared by its SHA-256 in constant time, and never logged.

A subject is an event type for the roles `publish`, `subscribe` and `history`, and the name of a
library for `rules`. Patterns have `*` for any run of characters; what a `deny` pattern matches is
refused, then what no `subjects` pattern matches.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from ensue.events.event import Event
from ensue.server.access.rates import Rate
from ensue.server.access.refusals import RefusedLogins
from ensue.server.settings.tables import ROLES, Role, TokenTable

LONGEST_KNOWN: Final = 256
"""Characters of a subject whose permission is remembered."""


class Principal:
    """A caller. `rate` bounds its requests, `event_rate` its events, if a bound is set."""

    def __init__(
        self,
        name: str,
        roles: Iterable[Role],
        subjects: Sequence[str],
        deny: Sequence[str],
        rate: Rate,
        event_rate: Rate | None = None,
        channels: Sequence[str] = ("*",),
    ) -> None:
        self.name = name
        self.roles = frozenset(roles)
        self.rate = rate
        self.event_rate = event_rate
        self._denied = _matcher(tuple(deny))
        self._allowed = _matcher(tuple(subjects))
        self._channels = _matcher(tuple(channels))
        self.is_limited = bool(deny) or "*" not in subjects
        self._known = lru_cache(maxsize=10_000)(self._look_up)

    def has(self, role: Role) -> bool:
        return role in self.roles or "admin" in self.roles

    def may_have(self, subject: str) -> bool:
        # A sender chooses types: long ones are not remembered, so that they cost no memory.
        return (self._known if len(subject) <= LONGEST_KNOWN else self._look_up)(subject)

    def _look_up(self, subject: str) -> bool:
        return not self._denied(subject) and self._allowed(subject) is not None

    def may_use(self, channel: str) -> bool:
        return self._channels(channel) is not None

    def may_read(self, event: Event) -> bool:
        return self.may_have(event.type)


class Tokens:
    """The tokens of a server."""

    def __init__(self, tables: Sequence[TokenTable], requests_per_second: int) -> None:
        self._requests_per_second = requests_per_second
        self._by_digest: list[tuple[bytes, Principal]] = []
        self.refused = RefusedLogins()
        self._anyone = Principal("anyone", ROLES, ("*",), (), Rate(requests_per_second))
        self.take(tables)

    def take(self, tables: Sequence[TokenTable]) -> None:
        """Go by these tokens from now on."""
        known: list[tuple[bytes, Principal]] = []
        for each in tables:
            if each.secret is not None:
                digest = hashlib.sha256(each.secret.encode()).digest()
            else:
                digest = bytes.fromhex(each.sha256 or "")
            event_rate = None if each.events_per_second is None else Rate(each.events_per_second)
            rate = Rate(self._requests_per_second)
            principal = Principal(
                each.name, each.roles, each.subjects, each.deny, rate, event_rate, each.channels
            )
            known.append((digest, principal))
        self._by_digest = known

    @property
    def are_needed(self) -> bool:
        return bool(self._by_digest)

    def principal(self, token: str | None) -> Principal | None:
        """The caller that a token belongs to."""
        if not self._by_digest:
            return self._anyone
        if token is None:
            return None
        given = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        found: Principal | None = None
        # All of them are compared, so that the time tells nothing about which one is near.
        for digest, principal in self._by_digest:
            if hmac.compare_digest(digest, given):
                found = principal
        return found


def _matcher(patterns: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    parts = ["".join(".*" if c == "*" else re.escape(c) for c in each) for each in patterns]
    return re.compile("|".join(parts) if parts else r"(?!)", re.DOTALL).fullmatch
