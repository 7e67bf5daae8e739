"""Links to other channels.

`federation` holds the links of one channel, and decides with `routes` and `duplicates` which event
goes over which link. `inprocess` and `tcp` implement links to channels of this process and of other
processes. `link` has the protocols between them, and `messages` the messages that links carry.
"""
