"""Gateways beside client libraries: the libraries alone (`clients`), both in turns (`paces`)."""
