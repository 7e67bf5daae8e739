"""The log of a server: one line of text or JSON for each record, on the standard error.

`writing` makes lines of records, `secrets` keeps secrets out of them, and `requests` names the
request that a record belongs to, and writes the access log.
"""
