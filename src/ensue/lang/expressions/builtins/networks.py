"""IN_NETWORK: whether an address lies in one of some networks.

Addresses are IPv4 or IPv6 text; networks are CIDR text, such as `10.0.0.0/8` or `fe80::/10`. An
address is never in a network of the other version. A text that is no address is an error of CESQL,
so that a predicate does not hold; a text that is no network is refused when a library is checked.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from ensue.lang.expressions.values import FaultError


def is_in_network(address: str, *networks: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        raise FaultError("functionEvaluation", False) from None
    return any(found in _network(each) for each in networks)


def network_problem(network: str) -> str | None:
    """What is wrong with a network; None if nothing is."""
    try:
        _network(network)
    except FaultError:
        return _described(network)
    return None


def _described(network: str) -> str:
    try:
        around = ip_network(network, strict=False)
    except ValueError:
        return f"`{network}` is no network: write its CIDR form, such as `10.0.0.0/8`"
    return f"`{network}` names an address inside of a network: the network is `{around}`"


@lru_cache(maxsize=1024)
def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        raise FaultError("functionEvaluation", False) from None
