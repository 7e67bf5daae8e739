"""Events as HTTP messages: structured, binary and batched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.federation.messages.bindings import (
    BATCH_TYPE,
    Message,
    Mode,
    NameBinding,
    read_batch,
)

BINDING = NameBinding("ce-")
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%') + " "
"""What a header may hold as it is; everything else is percent-encoded, as CloudEvents says."""


def read_request(headers: Mapping[str, str], body: bytes) -> list[Event]:
    """The events of a request. Raises `EventError` with all problems."""
    content_type = headers.get("Content-Type", "")
    if content_type.partition(";")[0].strip().lower() == BATCH_TYPE:
        return read_batch(body)
    given = {name: unquote(value) for name, value in headers.items()}
    return [BINDING.read(Message(body, content_type, given))]


def write_request(event: Event, mode: Mode) -> tuple[dict[str, str], bytes]:
    message = BINDING.write(event, mode)
    headers = {name: quote(value, safe=_SAFE) for name, value in message.headers.items()}
    return {**headers, "Content-Type": message.content_type}, message.body


def write_batch(events: Sequence[Event]) -> tuple[dict[str, str], bytes]:
    return {"Content-Type": BATCH_TYPE}, b"[" + b",".join(map(encode, events)) + b"]"
