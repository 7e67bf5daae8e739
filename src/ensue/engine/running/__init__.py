"""The parts of a run (`ensue.engine.run`): events on their way in, outputs on their way out, bytes.

`admission` takes, sets aside or refuses events and lets rules ask a history, `handout` hands
outputs to the caller, `snapshots` is a run as bytes, `resuming` puts an engine back to where such
bytes say it was, and `holding` says which keys rules hold.
"""
