"""Placement: the rules of one library over several sites, each event read where it arises.

    from ensue.federation.placement import Simulation, Sites, place

    sites = Sites.read("sites.toml", library.checked)
    placement = place(library.checked, sites)      # what runs where, what travels, and why
    SiteRun(placement, "plant")                    # one site, running
    Simulation(placement).run(events)              # all of them, in one process

What travels is decided in `planning` (on `sites`, `needs` and `fields`). A site runs in `running`:
`outposts` send events of the site to where a rule runs, or hold them back (`starts`); `homes` read
them there, in the order that `places` gives. Sites speak in `parcels`. The outputs are those of one
machine that reads all events in the order of their times, to the last attribute.
"""

from ensue.federation.placement.planning import PlacedRule, Placement, place
from ensue.federation.placement.running import SiteRun
from ensue.federation.placement.simulating import Simulation
from ensue.federation.placement.sites import Site, Sites

__all__ = ["PlacedRule", "Placement", "Simulation", "Site", "SiteRun", "Sites", "place"]
