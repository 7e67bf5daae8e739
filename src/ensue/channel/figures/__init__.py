"""Counts and laxity: how a channel measures itself."""
