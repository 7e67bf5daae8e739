"""Channels of a server, and the links between them."""
