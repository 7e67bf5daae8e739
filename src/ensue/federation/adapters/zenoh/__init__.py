"""Zenoh: peers that find each other, with no server between them."""
