"""Hunts with servers, connections and the wall clock."""
