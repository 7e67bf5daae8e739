"""Why a connection or a session of a link was ended: counted in `channel.federation.faults`.

A peer that breaks the protocol, whether by mistake or on purpose, never causes more than that.
"""

from __future__ import annotations

from enum import StrEnum


class LinkFault(StrEnum):
    """What a peer did wrong."""

    BAD_FRAME = "bad frame"  # cannot be decoded, or is longer than allowed
    UNEXPECTED = "unexpected frame"  # may not be sent at this point
    OTHER_PROTOCOL = "other protocol"  # speaks another version
    UNAUTHENTICATED = "unauthenticated"  # does not know the secret, or has no valid certificate
    WRONG_NAME = "wrong name"  # its certificate does not name its channel
    OWN_NAME = "own name"  # says that it is this very channel
    TOO_SLOW = "too slow"  # did not finish its handshake in time
    TOO_MANY_CALLERS = "too many callers"  # too many unfinished handshakes
    TOO_MANY_SESSIONS = "too many sessions"
    BAD_ADVERT = "bad advert"  # routes that cannot be, too many, or with bad predicates
    BAD_ACKNOWLEDGEMENT = "bad acknowledgement"  # of an event that was never sent
    SILENT = "silent"  # sent nothing for too long, not even a heartbeat


class LinkFaultError(Exception):
    """Ends the connection on which it is raised."""

    def __init__(self, fault: LinkFault) -> None:
        self.fault = fault
        super().__init__(fault)
