"""Whole federations on a simulated clock: the real gateways over models of services.

`clock` has the loop, `services` the models below the adapter seam, `world` what can happen to both,
`stories` a random federation with its faults, and the judge of what came of it. A seed gives the
same story again.
"""
