"""Positions of events and outputs: bytes that sort in the order of the reference engine.

In come times, arrivals, and the rules that led to an output; out go byte strings whose order is the
order of the whole run, so that outputs of different machines can be sorted together. A *moment* is
an event, or one firing of a timer, which comes before the events of its time, by correlation and
then by the last event that its instance has read. A *position* is a moment and, for an output, the
path of outputs that led to it; shorter paths come first, since rules over rules are first in, first
out. The beginning of each part gives its length, so that only parts of equal meaning are compared.
"""

from __future__ import annotations

import struct

_SIGN = 2**63
_STEP_SIZE = 10

_event_moment = struct.Struct(">QBQ").pack
_alarm_moment = struct.Struct(">QBI").pack
_depth = struct.Struct(">H")
_step = struct.Struct(">IHI").pack
_number = struct.Struct(">I").pack
_key_place = struct.Struct(">H").pack
_before_events = struct.Struct(">QB").pack

# The number of steps stands before the path, for the order, and behind it, to find its beginning.
_NO_STEPS = _depth.pack(0) * 2


def event_position(time: int, arrival: int) -> bytes:
    """The position of an event of the input."""
    return _event_moment(time + _SIGN, 1, arrival) + _NO_STEPS


def before_events(time: int) -> bytes:
    """A position after all timers that are due at a time, and before all its events."""
    return _before_events(time + _SIGN, 1)


def alarm_moment(due: int, correlation: int, last_read: bytes) -> bytes:
    """The moment of a timer; `last_read` identifies its instance within the correlation."""
    return _alarm_moment(due + _SIGN, 0, correlation) + last_read


def firing_position(moment: bytes, number: int) -> bytes:
    """The position of a firing, by its number among those of its instance at one moment."""
    return moment + _number(number) + _NO_STEPS


def reading_of(position: bytes, key_place: int) -> bytes:
    """What an instance has read last: the position of the event, and which of its keys it is."""
    return position + _key_place(key_place)


def output_position(read: bytes, correlation: int, key_place: int, number: int) -> bytes:
    """The position of an output, from the position of the event that it was made at."""
    (depth,) = _depth.unpack(read[-2:])
    steps_end = len(read) - 2
    steps_begin = steps_end - _STEP_SIZE * depth
    longer = _depth.pack(depth + 1)
    moment, steps = read[: steps_begin - 2], read[steps_begin:steps_end]
    return moment + longer + steps + _step(correlation, key_place, number) + longer
