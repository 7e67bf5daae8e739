"""The tables of a gateway's TOML file: what they may hold, and every mistake in them at once.

    [gateway]
    name = "roadside"

    [[service]]
    name = "cars"
    kind = "mqtt"
    url = "mqtt://127.0.0.1:1883"

    [[subscribe]]
    at = "office"
    from = ["cars"]
    where = "speed > 50"

Secrets are put in where the text refers to them: `${env:NAME}`, `${file:PATH}`. A message never
shows a value that had one.
"""

from ensue.federation.configuration.findings import TableFindings
from ensue.federation.configuration.mappings import MAP_KEYS
from ensue.federation.configuration.reading import (
    GATEWAY_KEYS,
    SITE_KEYS,
    read_file,
    read_settings,
)
from ensue.federation.configuration.services import SERVICE_KEYS, SUBSCRIBE_KEYS
from ensue.federation.configuration.settings import GatewaySettings, SiteSettings, StandingRequest

__all__ = [
    "GATEWAY_KEYS",
    "MAP_KEYS",
    "SERVICE_KEYS",
    "SITE_KEYS",
    "SUBSCRIBE_KEYS",
    "GatewaySettings",
    "SiteSettings",
    "StandingRequest",
    "TableFindings",
    "read_file",
    "read_settings",
]
