"""Filters asked over a history.

`asker` says what a filter with temporal terms means: its terms become windows of time (`windows`,
`intervals`), and FILTER compares with the latest matches (`latest`, `references`). `prepared` keeps
filters and their answers; `bounding` lets a caller end a question that takes too long.
"""
