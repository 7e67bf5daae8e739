"""Why an output came, and what an output still waits for, in words.

`explainer` is the run that remembers reasons, `progress` says how far a rule has come, and
`conditions` says what `having` found. All three follow the definitions (`ensue.engine.reference`).
"""
