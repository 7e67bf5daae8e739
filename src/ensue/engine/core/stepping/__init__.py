"""The step of a cell, and the compiled loops that drive it.

A *cell* is what one rule holds under one key: its state, its slots, its timers and its registers,
side by side in one array of numbers (`core.cells`). `step` takes a cell, addressed by its offset,
through one letter by the packed table of its rule (`core.packed`). It is inlined into the drivers:

- `walk`: one rule over a column of events;
- `visits`: many rules over many events, each event through the cells of the rules that want it,
  after the alarms of those cells that come before it;
- `ensue.engine.step.many.kernels`: many rules over one event, where keys come and go.

Rules that are few go event by event through rows in Python (`core.instances.rows`).

A driver stops at what it cannot go on with and says what it lacks; Python mends that and calls it
again from the same place. Numbers are unsigned where they address memory, so that no code asks
whether they count from the end. `arrays` has the arrays that drivers share.
"""
