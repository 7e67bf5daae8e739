"""The real-time event channel: suppliers push, consumers are called, correlations sit in between.

    from ensue.channel import build, want

    with build("full", "plant").dispatching("pool", threads=2).done() as channel:
        channel.consumers.connect("alarms", print, want("Reading", where="celsius > 90"))
        channel.suppliers.connect("boiler", "Reading").send("Reading", {"celsius": 95})

The journey of an event: `channel` takes it in; `index` (or `everyone`) finds who wants it, from the
`wants` that consumers gave; a `receiver` queues it under its consumer's `policies`; a strategy
(`reactive`, `pool`, `asynchronous`) gives turns by priority; in a turn, a step (`conditions`,
`correlating`) reads it or the consumer is called. `timeouts` adds events of the clock, `federation`
carries events to other channels, over `tcp` if need be. `builder` puts in only what is asked for.
"""

from ensue.channel.builder import Builder, build, from_toml
from ensue.channel.channel import Channel
from ensue.channel.closing import Closing
from ensue.channel.consumers import Consumer
from ensue.channel.delivery.receiver import Failure
from ensue.channel.figures.values import ConsumerFigures, Figures, Laxity
from ensue.channel.lookup.wants import all_of, any_of, correlated, nothing, want
from ensue.channel.policies import Block, Disconnect, DropNewest, DropOldest, Quality, Reason
from ensue.channel.suppliers import Supplier
from ensue.channel.timing.clock import VirtualClock, WallClock
from ensue.channel.timing.clock_events import TIMEOUT, Timeout

__all__ = [
    "TIMEOUT",
    "Block",
    "Builder",
    "Channel",
    "Closing",
    "Consumer",
    "ConsumerFigures",
    "Disconnect",
    "DropNewest",
    "DropOldest",
    "Failure",
    "Figures",
    "Laxity",
    "Quality",
    "Reason",
    "Supplier",
    "Timeout",
    "VirtualClock",
    "WallClock",
    "all_of",
    "any_of",
    "build",
    "correlated",
    "from_toml",
    "nothing",
    "want",
]
