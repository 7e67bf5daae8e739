"""Links: the services of a gateway, each kept connected, with what is on its way to it and from it.

`link` keeps an adapter connected and runs its tasks. `receipts` has the events that came from the
service, until they are acknowledged; `outbox` the events that go to it, until it has them; `counts`
the figures of both.
"""
