"""Federation: gateways that make one event service out of many unlike ones.

    from ensue.federation import Gateway

    gateway = Gateway.from_config(tables)       # the tables of a TOML file
    await gateway.start()                       # connected, and every standing request in force
    gateway.status()
    await gateway.stop()

The way of an event: an adapter (`adapters/`) receives it, its link (`link`) hands it to the gateway
(`gateway`), which looks up the services that want it and the links it travels over (`routing/`),
maps it (`mapping/`), and queues it at the links of its destinations; when all have it, it is
acknowledged. Requests and what gateways say to each other are control events (`routing/control`);
`messages/` has the common event and its forms.
"""

from ensue.federation.adapters.local import provide
from ensue.federation.gateway import Gateway
from ensue.federation.routing.control import Request

__all__ = ["Gateway", "Request", "provide"]
