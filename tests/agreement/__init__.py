"""Agreement: every engine puts out the same on random libraries, whichever way it is run.

A *trial* (`trials`) is a library, a stream and how far its clock goes; `kinds` draws trials of each
kind from a seed. A judge says what follows: one of the two readings of the definitions that share
no code with the engines (`tests.oracle`, `tests.oracle.values`), or the reference engine where
neither can tell. A *way* (`ways`) is an engine and what happens while it runs: how the stream is
cut, whether the run is saved and brought back, moved to another engine, given other rules. Whole
runs over tables, as lines of text and over several sites are in `transfers`; jobs and streams of
Spark in `spark/`, many trials in each.

`comparing` holds all of them against the judge, makes a difference as small as it gets, and prints
it. The hunts `engines`, `spark-jobs` and `spark-streams` (`tests.hunts`) play seeds for as long as
one likes, and their short runs are what the suite has of agreement. One trial is shown, and
compared again, by

    python -m tests.agreement KIND SEED [WAY...]
"""
