"""Commands that speak to something that runs already: a server, or the gateways of a federation."""
