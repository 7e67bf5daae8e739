"""The index in arrays, as compiled loops read it: tests (`packing`), conjunctions (`storage`) and
the loops themselves (`kernels`)."""
