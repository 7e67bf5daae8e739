"""Functions and operators of CESQL: signatures, LIKE, MATCHES, networks, clocks."""
