"""A deterministic simulation of channels and their links, in virtual time and by a seed.

The real code of channels, sessions, connections and routes runs on an event loop whose time is
virtual (`loop`) over a network in memory (`network`). `world` draws channels, links, consumers and
troubles from a seed and ends with the invariants of `tests.channel.accounting`; `liars` lets
neighbours lie, and `rules` compares rules over links with rules in one channel. `test_simulation`
runs a sample of seeds, and the hunt `linked-channels` (`tests.hunts`) as many as there is time for.

What a seed does depends on nothing but the seed and the code.
"""
