"""Routing of a gateway: what is wanted where, and over which links it travels.

`control` is what gateways tell each other, `tree` the links that carry events, `interest` the index
of wishes, `distribution` which services a request means, `pushdown` what of a filter a service can
apply, and `memory` what a gateway keeps of all this in a file.
"""
