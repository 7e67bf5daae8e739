"""Links to other channels.

`federation` keeps the links of one channel and decides what goes where (`routes`, `duplicates`);
`inprocess` and `tcp` carry it to a channel in this process or in another one. `link` has the
protocols between them, `messages` what is said.
"""
