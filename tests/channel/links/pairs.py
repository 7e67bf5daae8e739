"""Two channels of this process that are linked by TCP, over loopback."""

from __future__ import annotations

from typing import Any

from ensue.channel.links.tcp.links import TcpLink
from ensue.events.event import Event
from tests.channel.making import builder, eventually


class Pair:
    """A channel that listens, one that dials, and what the listening one's consumer got."""

    def __init__(self, **options: Any) -> None:
        self.near = builder(name="near").done()
        self.far = builder(name="far").done()
        self.got: list[Event] = []
        self.far.consumers.connect("one", self.got.append, "Notify")
        self.host, self.port = self.far.federation.listen()
        self.link: TcpLink = self.near.federation.connect(
            self.host, self.port, backoff="5 ms", seed=1, **options
        )
        assert self.link.wait_until_connected("60 s")
        assert eventually(self.is_wanted)

    def is_wanted(self) -> bool:
        return self.near.is_wanted(["Notify"], None)

    def close(self) -> None:
        self.near.close()
        self.far.close()
