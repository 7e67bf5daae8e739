"""Faults of peers, and the counts of faults and lost events.

A peer that breaks the protocol, by mistake or on purpose, ends its own connection and session and
has no other effect. The fault is counted in `channel.federation.faults`. Events that links could
not carry are counted by reason, once for each destination.
"""

from __future__ import annotations

import threading
from collections import Counter
from enum import StrEnum

from ensue.channel.policies import Reason


class LinkFault(StrEnum):
    """What a peer did wrong."""

    BAD_FRAME = "bad frame"  # cannot be decoded, or is longer than allowed
    UNEXPECTED = "unexpected frame"  # may not be sent at this point
    OTHER_PROTOCOL = "other protocol"  # speaks another version
    UNAUTHENTICATED = "unauthenticated"  # does not know the secret, or has no valid certificate
    WRONG_NAME = "wrong name"  # its certificate does not name its channel
    OWN_NAME = "own name"  # claims the id of this channel
    TOO_SLOW = "too slow"  # did not finish its handshake in time
    TOO_MANY_CALLERS = "too many callers"  # too many unfinished handshakes
    TOO_MANY_SESSIONS = "too many sessions"
    BAD_ADVERT = "bad advert"  # routes that are impossible, too many, or have bad predicates
    BAD_ACKNOWLEDGEMENT = "bad acknowledgement"  # of an event that was never sent
    ALREADY_LINKED = "already linked"  # there is another link to a broker of that name
    CIRCLE = "circle"  # its link would close a circle of brokers
    OTHER_KIND = "other kind"  # only one of the two brokers uses advertisements
    SILENT = "silent"  # sent nothing for too long, not even a heartbeat


class LinkFaultError(Exception):
    """Ends the connection on which it is raised."""

    def __init__(self, fault: LinkFault) -> None:
        self.fault = fault
        super().__init__(fault)


class LinkCounts:
    """Counts of one federation. Thread-safe; links count while they hold their own locks."""

    def __init__(self) -> None:
        self.repeated = 0
        self._lock = threading.Lock()
        self._lost: Counter[Reason] = Counter()
        self._faults: Counter[LinkFault] = Counter()

    def lose(self, reason: Reason, destinations: int) -> None:
        with self._lock:
            self._lost[reason] += destinations

    def repeat(self, destinations: int) -> None:
        with self._lock:
            self.repeated += destinations

    def fault(self, fault: LinkFault) -> None:
        with self._lock:
            self._faults[fault] += 1

    def lost(self) -> dict[Reason, int]:
        with self._lock:
            return dict(self._lost)

    def faults(self) -> dict[LinkFault, int]:
        with self._lock:
            return dict(self._faults)
