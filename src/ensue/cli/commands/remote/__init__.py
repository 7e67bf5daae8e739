"""Commands that call a running server, or the gateways of a federation."""
