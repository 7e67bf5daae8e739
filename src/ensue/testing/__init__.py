"""What parts of your own have to promise, as tests that any project can run.

`dispatching` has the contract of dispatching strategies of a channel. A contract is a class: derive
a test class from it, say how your part is made, and let pytest collect it.
"""
