"""The clock of a stream, for every engine.

`ordering` puts events in the order of their times, `jumps` bounds how far one event may move the
clock, and `advancing` moves it a long way in steps. `alarms` has the instances whose timers are due
in the order of the stream, and `sweeping` says when to look for keys whose time has passed.
"""
