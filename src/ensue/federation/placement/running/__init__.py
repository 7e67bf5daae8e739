"""Running: one site (`site`), with the rules that trigger there and those that it feeds.

`homes` read events for the rules that trigger here, once the `gates` of their keys are open.
`outposts` send events to where other rules trigger, or hold them back (`starts`). `asking` finds
the ports that an event matches; `traffic` has what waits for other sites and what has come.
"""
