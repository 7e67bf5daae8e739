"""Secrets kept out of the log, whoever writes a record: a driver, an exception, or the server.

In comes the text of a record; out goes one in which tokens and passwords are `***`. Secrets of the
settings are known by value; others by the place that they stand in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ensue.server.settings import Settings

HIDDEN: Final = "***"
SHORTEST: Final = 6
"""Characters of a value that is looked for: a shorter one would be found in other words."""
SECRET_KEYS: Final = ("secret", "password", "token", "credential")
_places: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"(?i)\b(bearer[ .]|basic )[^\s\"'`,;]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://)[^\s/@\"'`]+@"), rf"\1{HIDDEN}@"),
    (
        re.compile(
            r"(?i)\b((?:access_|api_?|auth_)?(?:token|key|secret|password|signature|sig))="
            r"[^\s&\"'`]+"
        ),
        rf"\1={HIDDEN}",
    ),
)
"""A token of a request, the name and password in an address, and a secret in its query."""

Hide = Callable[[str], str]


def hider(values: Iterable[str]) -> Hide:
    """A function that takes these values out of a text, and what stands where secrets do."""
    known = sorted({each for each in values if len(each) >= SHORTEST}, key=len, reverse=True)
    exact = re.compile("|".join(map(re.escape, known))) if known else None

    def hide(text: str) -> str:
        if exact is not None:
            text = exact.sub(HIDDEN, text)
        for pattern, shown in _places:
            text = pattern.sub(shown, text)
        return text

    return hide


def secrets_of(settings: Settings) -> set[str]:
    """The secrets that a file of settings holds."""
    found = {each.secret for each in settings.tokens if each.secret is not None}
    found |= set(_in_tables(settings.gateway))
    found |= set(_in_address(settings.history.url or ""))
    for channel in settings.channels:
        found |= set(_in_address(channel.history or ""))
    return found


def _in_tables(value: Any, name: str = "") -> Iterable[str]:
    """Secrets in the tables of a gateway: keys that say so, and passwords in addresses."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _in_tables(each, str(key))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _in_tables(each, name)
    elif isinstance(value, str):
        if any(each in name.lower() for each in SECRET_KEYS):
            yield value
        yield from _in_address(value)


def _in_address(text: str) -> Iterable[str]:
    try:
        password = urlsplit(text).password
    except ValueError:
        return
    if password:
        yield from {password, unquote(password)}
