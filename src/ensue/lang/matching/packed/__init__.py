"""The index in arrays for compiled loops.

`packing` turns tests into numbers, `storage` has the conjunctions, `kernels` the loops.
"""
