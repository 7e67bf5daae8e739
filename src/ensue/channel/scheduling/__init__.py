"""Priorities from rates: operations declare how often they run and how long, and the rest follows.

    operations (TOML or tables) -> rates along dependencies -> priorities -> worst response times

`operations` reads what is declared. `rates` follows suppliers to consumers and says when each
operation runs. `strategies` gives priorities. `response_times` proves deadlines, or says which one
is missed; `timeline` plays one hyperperiod, for a picture. `schedule` puts these together, and
`measured` holds a running channel against it. Nothing here dispatches: that is `channel.dispatch`.
"""

from ensue.channel.scheduling.operations import Operation, ScheduleTables
from ensue.channel.scheduling.schedule import Schedule, Scheduled

__all__ = ["Operation", "Schedule", "ScheduleTables", "Scheduled"]
