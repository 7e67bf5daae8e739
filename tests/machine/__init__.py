"""Tests of the machine room."""
