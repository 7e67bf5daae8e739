"""The links of a gateway, watched: told in the log when one breaks, and when it works again.

A gateway has a status for each of its services and tells nothing by itself; it is looked at every
second here. A link that has not been up since the start is told after a moment, too.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from ensue.server.station.troubles import Troubles

if TYPE_CHECKING:
    from ensue.federation.gateway import Gateway

LOOK_SECONDS: Final = 1.0
BEGIN_SECONDS: Final = 3.0
"""How long a link may take to come up before it is told."""


async def watch_links(gateway: Gateway) -> None:
    """Look at the links of a gateway until cancelled."""
    troubles = Troubles("")
    begun = time.monotonic()
    seen: set[str] = set()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        is_late = time.monotonic() - begun > BEGIN_SECONDS
        for each in gateway.status():
            name, is_up = each["service"], each["connected"]
            if is_up:
                seen.add(name)
            elif name not in seen and not is_late:
                continue
            reason = None if is_up else each["last_error"] or "it is not connected"
            troubles.note(f"the link to service `{name}`", reason)
