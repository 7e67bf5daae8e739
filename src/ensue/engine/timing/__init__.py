"""The clock of a stream, for every engine.

`ordering` puts events in the order of their times, `jumps` bounds how far one event may move the
clock, and `agreeing` begins it anew where most events are elsewhere. `alarms` has the timers that
are due in the order of the stream, long advances in steps, and when to look for idle keys.
"""
