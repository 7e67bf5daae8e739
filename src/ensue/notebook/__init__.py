"""Ensue in a notebook: tables of events, and views of what runs that update in place.

Libraries, machines, runs, cases and reasons show themselves; here is what a notebook asks for by
name. HTML and SVG only, without scripts, so that a saved notebook shows what was seen.
"""

from ensue.notebook.live import LiveView, live
from ensue.notebook.tables import EventTable, table

__all__ = ["EventTable", "LiveView", "live", "table"]
