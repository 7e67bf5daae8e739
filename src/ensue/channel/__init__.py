"""The real-time event channel: suppliers push events, consumers are called with what they want.

    from ensue.channel import build, want

    with build("full", "plant").dispatching("pool", threads=2).done() as channel:
        channel.consumers.connect("alarms", print, want("Reading", where="celsius > 90"))
        channel.suppliers.connect("boiler", "Reading").send("Reading", {"celsius": 95})

The path of an event: `channel` accepts it; a look-up (`lookup/`) finds the consumers that want it;
each consumer's receiver queues it by the consumer's `policies` (`delivery/`); a strategy
(`dispatch/`) gives turns by priority; in a turn, a step (a group, a Python test or a correlation)
reads the event, or the consumer is called with it. `timing/` adds timeouts, `links/` carries events
to other channels, `realtime/` sets thread priorities, and `figures/` counts. `builder` loads only
the parts that are asked for.
"""

from ensue.channel.builder import Builder, build, from_toml
from ensue.channel.channel import Channel
from ensue.channel.closing import Closing
from ensue.channel.consumers import Consumer
from ensue.channel.delivery.receiver import Failure, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher, offered
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
    "Dispatcher",
    "DropNewest",
    "DropOldest",
    "Failure",
    "Figures",
    "Laxity",
    "Quality",
    "Reason",
    "Receiver",
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
    "offered",
    "want",
]
