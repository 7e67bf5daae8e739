"""Events to and from streams of Redis.

A stream keeps its entries; the gateway has a consumer group of its own there, which remembers how
far it has acknowledged, and `recall` looks at the end of the stream. An entry has one field `event`
with the JSON.

The client library reads an answer line by line, which takes as long as all else that a gateway does
with an event. So a script at the server hands over many entries as one text (MessagePack), once the
first has been waited for, and another adds many at once; where scripts are not allowed, entries
come and go one by one. The server bounds an answer by a number of entries alone, and an entry may
have half a gigabyte: the script also counts bytes, and without it few entries are asked for.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

import msgspec

from ensue.errors import LinkError
from ensue.events.cloudevents import encode
from ensue.events.event import Event
from ensue.federation.adapters.base import (
    Capabilities,
    Incoming,
    Outgoing,
    Service,
    broken,
)
from ensue.federation.adapters.redis.adapter import RedisAdapter, exceptions, incoming
from ensue.federation.limits import limits
from ensue.subscriptions import Filter

FIELD = b"event"
_NO_SCRIPTS = re.compile("no permissions|unknown command", re.IGNORECASE)
MOST_AT_ONCE = 1000
FEW = 8
"""Entries that are asked for at once without it."""
TRANSIT_KEPT = 100_000
"""Entries that the stream of events in transit keeps, and how many a look back shows."""
RECALLED = 5000
_MILLISECONDS_TO_WAIT = 500
_READ_MANY = """
local found, size = {}, 0
for _ = 1, ARGV[3], 4 do
    local some = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 4,
        'STREAMS', KEYS[1], KEYS[2], '>', '>')
    if not some then break end
    for _, stream in ipairs(some) do
        found[#found + 1] = stream
        for _, entry in ipairs(stream[2]) do
            for _, text in ipairs(entry[2]) do size = size + #text end
        end
    end
    if size > tonumber(ARGV[4]) then break end
end
return #found > 0 and cmsgpack.pack(found) or false
"""
_ADD_MANY = """
for number = 2, #ARGV do
    if ARGV[1] == '' then
        redis.call('XADD', KEYS[1], '*', 'event', ARGV[number])
    else
        redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'event', ARGV[number])
    end
end
"""
_packed = msgspec.msgpack.Decoder(list[tuple[str, list[tuple[str, list[str] | None]]]])


class StreamAdapter(RedisAdapter):
    capabilities: ClassVar[Capabilities] = Capabilities(
        kind="redis",
        driver="redis",
        incoming="at least once",
        outgoing="at least once",
        survives_restart=True,
        recalls=True,
        pushes_down="nothing",
        sees_ahead=True,
        encodings=("structured",),
        protection=("TLS", "user and password", "client certificate"),
    )

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._group = f"ensue.{service.gateway}"
        self._streams = {service.address: False, service.transit_address: True}
        self._is_listening = asyncio.Event()
        self._pending: dict[str, str] = {}
        self._ahead: dict[str, str] = {}
        """The first entry of each stream that has not been handed out, as a bound of `XRANGE`."""
        self._reads_many = self._adds_many = True

    async def listen(self, wanted: Sequence[Filter]) -> None:
        if self._is_listening.is_set():
            return
        for stream, in_transit in self._streams.items():
            start = "0" if self._options.start == "earliest" and not in_transit else "$"
            creation = self._client.xgroup_create(stream, self._group, start, mkstream=True)
            try:
                await creation
            except exceptions.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise broken(self.service, f"cannot read `{stream}`", error) from None
            except (exceptions.RedisError, OSError) as error:
                raise broken(self.service, f"cannot read `{stream}`", error) from None
        # What was handed out before and never acknowledged comes first.
        self._pending = dict.fromkeys(self._streams, "0")
        for stream in self._streams:
            self._ahead[stream] = await self._do("cannot read", self._first_unread(stream))
        self._is_listening.set()

    async def unlisten(self) -> None:
        self._is_listening.clear()
        for stream in self._streams:
            try:
                await self._client.xgroup_destroy(stream, self._group)
            except exceptions.ResponseError:
                # A stream that never was has no group either.
                continue
            except (exceptions.RedisError, OSError) as error:
                raise broken(self.service, "cannot end", error) from None

    async def _first_unread(self, stream: str) -> str:
        """The first entry that was handed out and not acknowledged, or else what follows on the
        last that was handed out."""
        pending = await self._client.xpending(stream, self._group)
        if pending["pending"]:
            return str(pending["min"].decode())
        groups = await self._client.xinfo_groups(stream)
        last = next(each for each in groups if each["name"] == self._group.encode())
        return f"({last['last-delivered-id'].decode()}"

    async def receive(self) -> list[Incoming]:
        found = await self._receive()
        for each in found:
            stream, entry = each.token
            self._ahead[stream] = f"({entry.decode() if isinstance(entry, bytes) else entry}"
        return found

    async def _receive(self) -> list[Incoming]:
        await self._is_listening.wait()
        while self._is_listening.is_set():
            where = self._pending or dict.fromkeys(self._streams, ">")
            most = 1 if self._reads_many and not self._pending else FEW
            try:
                answer = await self._client.xreadgroup(
                    self._group, "gateway", where, most, block=_MILLISECONDS_TO_WAIT
                )
            except exceptions.ResponseError as error:
                if not self._is_listening.is_set():
                    break
                raise broken(self.service, "cannot read", error) from None
            except (exceptions.RedisError, OSError) as error:
                raise broken(self.service, "cannot read", error) from None
            entries = list(answer.items() if isinstance(answer, dict) else answer)
            found = [pair for stream, groups in entries for pair in self._found(stream, groups)]
            if found:
                return found + (await self._read_many() if most == 1 else [])
        await asyncio.sleep(0)
        return []

    async def _read_many(self) -> list[Incoming]:
        """The entries that are there already."""
        try:
            bounds = (self._group, "gateway", MOST_AT_ONCE, limits().redis_bytes_at_once)
            packed = await self._client.eval(
                _READ_MANY, len(self._streams), *self._streams, *bounds
            )
        except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
            raise broken(self.service, "cannot read", error) from None
        except exceptions.RedisError:
            # Not everybody may run scripts, or the group was just ended. What the script was handed
            # out before it failed comes again, one by one.
            if self._is_listening.is_set():
                self._reads_many = False
                self._pending = dict.fromkeys(self._streams, "0")
            return []
        if packed is None:
            return []
        try:
            answer = _packed.decode(packed)
        except (msgspec.MsgspecError, UnicodeError):
            # An entry is no text. All of them have been handed out, and come again one by one.
            self._reads_many = False
            self._pending = dict.fromkeys(self._streams, "0")
            return []
        found = []
        for name, entries in answer:
            for entry, fields in entries:
                pairs = dict(zip(fields[::2], fields[1::2], strict=True)) if fields else {}
                body = pairs.get(FIELD.decode())
                given = None if body is None else body.encode()
                found.append(incoming(given, (name, entry), self._streams[name]))
        return found

    async def acknowledge(self, tokens: Sequence[Any]) -> None:
        async with self._client.pipeline(transaction=False) as pipeline:
            for stream in self._streams:
                done = [entry for where, entry in tokens if where == stream]
                if done:
                    pipeline.xack(stream, self._group, *done)
            await self._do("cannot acknowledge", pipeline.execute())

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        service = self.service
        for in_transit, group in groupby(outgoing, key=attrgetter("in_transit")):
            bodies = [encode(each.event) for each in group]
            if in_transit:
                await self._add(service.transit_address, TRANSIT_KEPT, bodies)
            else:
                await self._add(service.address, self._options.longest, bodies)

    async def _add(self, stream: str, longest: int | None, bodies: list[bytes]) -> None:
        if self._adds_many:
            try:
                added = self._client.eval(_ADD_MANY, 1, stream, longest or "", *bodies)
                await self._do("cannot publish", added)
                return
            except LinkError as error:
                if not _NO_SCRIPTS.search(str(error)):
                    raise
                self._adds_many = False
        async with self._client.pipeline(transaction=False) as pipeline:
            for body in bodies:
                pipeline.xadd(stream, {FIELD: body}, maxlen=longest)
            await self._do("cannot publish", pipeline.execute())

    async def recall(self) -> list[Event]:
        found: list[Event] = []
        for stream in self._streams:
            last, count, size = "+", 0, 0
            while count < RECALLED and size < limits().recalled_bytes:
                page = self._client.xrevrange(stream, last, count=FEW)
                entries = await self._do("cannot read", page)
                if not entries:
                    break
                for _, fields in entries:
                    read = incoming(fields.get(FIELD), None, False)
                    size += read.size
                    if read.event is not None:
                        found.append(read.event)
                last, count = f"({entries[-1][0].decode()}", count + len(entries)
        return found

    async def ahead(self) -> AsyncIterator[Sequence[Event]]:
        for stream in self._streams:
            first, most = self._ahead[stream], FEW
            about = await self._do("cannot read", self._client.xinfo_stream(stream))
            last = about["last-generated-id"].decode()
            while True:
                page = self._client.xrange(stream, first, last, count=most)
                entries = await self._do("cannot read", page)
                if not entries:
                    break
                read = [incoming(fields.get(FIELD), None, False) for _, fields in entries]
                yield [each.event for each in read if each.event is not None]
                first = f"({entries[-1][0].decode()}"
                size = max(each.size for each in read)
                fitting = limits().redis_bytes_at_once // (size + 1)
                most = max(FEW, min(2 * most, MOST_AT_ONCE, fitting))

    async def lag(self) -> int | None:
        try:
            groups = await self._do("cannot ask", self._client.xinfo_groups(self.service.address))
        except LinkError:
            return None
        for each in groups:
            if each["name"] == self._group.encode() or each["name"] == self._group:
                waiting = each.get("lag")
                return None if waiting is None else int(waiting) + int(each["pending"])
        return None

    def _found(self, stream: bytes | str, groups: Any) -> list[Incoming]:
        name = stream.decode() if isinstance(stream, bytes) else stream
        entries = [pair for group in groups for pair in _pairs(group)]
        if self._pending:
            if entries:
                self._pending[name] = entries[-1][0]
            else:
                self._pending.pop(name, None)
        return [
            incoming((fields or {}).get(FIELD), (name, entry), self._streams[name])
            for entry, fields in entries
        ]


def _pairs(group: Any) -> list[Any]:
    """The entries of an answer, which the two protocols of Redis nest differently."""
    if isinstance(group, tuple):
        return [group]
    return list(group)
