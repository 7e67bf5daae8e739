"""Brokers: subscriptions that find their events through a tree of brokers.

    from ensue.brokers import Broker, link

    leaf, root = Broker("leaf"), Broker("root")
    link(leaf, root)
    leaf.subscribe("me", "price > 10", print)
    root.publish(event)

Only the most general subscriptions travel between brokers (`forwarding`), towards advertisements
where brokers go by them; every subscriber gets what one broker would give.
"""

from ensue.brokers.broker import Broker
from ensue.brokers.inprocess import link, unlink

__all__ = ["Broker", "link", "unlink"]
