"""Records of the log as lines: time, level, where from, message, and what it is about.

In come records of `logging`, of the server and of the libraries that it uses; out goes one line for
each on the standard error, as text or as JSON, without line ends, control characters or secrets in
it. The libraries are heard from `warning` on.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

import msgspec

from ensue.server.logs.requests import REQUEST
from ensue.server.logs.secrets import Hide, hider, secrets_of
from ensue.server.settings import Settings

ABOUT: Final = (
    "request", "channel", "what", "library", "version", "status", "milliseconds", "client", "token",
    "entries", "seconds",
)  # fmt: skip
"""What a record may be about, beside its message: members of its JSON, `name=value` in its text."""
OURS: Final = "ensue"


class LineFormatter(logging.Formatter):
    """One line for each record."""

    def __init__(self, form: Literal["text", "json"], hide: Hide) -> None:
        super().__init__()
        self._form = form
        self._hide = hide

    def format(self, record: logging.LogRecord) -> str:
        about = {name: getattr(record, name, None) for name in ABOUT}
        about["request"] = about["request"] or REQUEST.get()
        members: dict[str, Any] = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in about.items() if value is not None},
        }
        if record.exc_info:
            members["traceback"] = self.formatException(record.exc_info)
        hidden = {
            name: self._hide(_encodable(value)) if isinstance(value, str) else value
            for name, value in members.items()
        }
        return _json(hidden) if self._form == "json" else _text(hidden)


def _encodable(text: str) -> str:
    """A text without halves of surrogate pairs, which a request may bring."""
    return text.encode("utf-8", "backslashreplace").decode()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _json(members: dict[str, Any]) -> str:
    return msgspec.json.encode(members).decode()


def _text(members: dict[str, Any]) -> str:
    head = [str(members.pop(name)) for name in ("time", "level", "logger", "message")]
    head[1] = head[1].upper().ljust(7)
    more = [f"{name}={_value(value)}" for name, value in members.items()]
    return " ".join([*(_printable(each) for each in head), *more])


def _value(value: object) -> str:
    text = str(value)
    plain = text and not any(each.isspace() or each in '"=\\' for each in text)
    if plain and text.isprintable():
        return text
    return _printable(msgspec.json.encode(text).decode())


def _printable(text: str) -> str:
    """A text without what ends a line or steers a terminal."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def begin_log(settings: Settings, stream: TextIO | None = None) -> None:
    """Write the log of this process as its settings say, from now on."""
    table = settings.log
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(LineFormatter(table.format, hider(secrets_of(settings))))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    # It tells each request that is none, of which a stranger can send many: metrics count them.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger(OURS).setLevel(table.level.upper())
    # Asked for, it is written whatever the level is.
    logging.getLogger("ensue.server.access").setLevel(logging.INFO)
