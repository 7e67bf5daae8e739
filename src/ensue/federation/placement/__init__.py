"""Placement: the rules of one library over several sites, each event read where it arises.

    from ensue.federation.placement import Simulation, Sites, place

    sites = Sites.read("sites.toml", library.checked)
    placement = place(library.checked, sites)      # what runs where, what travels, and why
    SiteRun(placement, "plant")                    # one site, running
    Simulation(placement).run(events)              # all of them, in one process

What travels is decided in `planning` (on `sites` and `fields`). A site runs in `running`; sites
speak in `parcels`, and `places` gives the order in which rules read. `simulating` runs all sites in
one process; `attaching` and `adapter` join a site to its gateway. The outputs are those of one
machine that reads all events in the order of their times, to the last attribute.
"""

from ensue.federation.placement.planning.placement import PlacedRule, Placement, place
from ensue.federation.placement.running.site import SiteRun
from ensue.federation.placement.simulating import Simulation
from ensue.federation.placement.sites import Site, Sites

__all__ = ["PlacedRule", "Placement", "Simulation", "Site", "SiteRun", "Sites", "place"]
