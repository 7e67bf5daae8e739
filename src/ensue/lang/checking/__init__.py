"""The parts of the checker, one module for each part of a library.

`event_types` checks declarations and leaves a `TypeForest` for the rest to ask; `ports` checks what
a correlation reads and by which key; `filters` and `transformers` check the two phases of a filter
correlation, `ecl` the other body; `names` says what a name in an expression stands for, and
`suggestions` what it was probably meant to be; `feeding` finds which rules read the outputs of
which. `ensue.lang.checker` puts them together.
"""
