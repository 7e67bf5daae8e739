"""Hunts: what looks for unknown faults, for as long as one likes, from seeds that change.

    python -m tests.hunts --list
    python -m tests.hunts [NAME...] [--minutes N] [--seed S] [--faults A,B]

A hunt is one module in `computing/`, `servers/` (servers, connections, the wall clock) or `spark/`;
the folder says in which lane of the suite its short run is. Such a module has

- a docstring, whose first line is the aim of the hunt;
- `hunt(seed)`, which plays one round and raises an exception whose text can be read where
  something is wrong. A seed gives the same round again. It returns what was tried, by name, as
  numbers that are added up: a hunt that tries nothing finds nothing;
- `SHORT`, the seeds that the suite runs, in a few seconds together;
- `FAULTS`, if it has faults to choose from: their names. It then is `hunt(seed, faults)`.

The name of a hunt is that of its module, with `-` for `_`. Nothing else has to be told. What a hunt
finds is cured and becomes a case or a test by itself; the seed alone is no test, since a generator
that draws otherwise tomorrow forgets it.
"""
