"""What is still there after the power has failed, where a promise says that it is.

`disk` is a model of a disk that keeps only what it was told to keep. What SQLite writes by itself
is out of its sight; there the tests ask the connections for what they demand of a commit.
"""
