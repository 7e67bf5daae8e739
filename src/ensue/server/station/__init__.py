"""What a server holds and does, without HTTP: journal, libraries that run, history, subscribers.

Events come in through `Station.publish` and are read by one thread, the *line*, many at a time:
every library reads them, then events and outputs are written to the journal in one transaction,
then they are acknowledged and handed to subscribers. `journal` keeps them, `hosted` runs a library,
`recovery` puts runs back to where they were, `indexing` carries events from the journal to the
history, and `feed` hands entries to subscribers (`private_run`: outputs of rules of their own).
"""
