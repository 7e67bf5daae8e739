"""Text files as chunks: `json_lines` and `csv_rows`.

Both find the places of values in a block of bytes (`blocks`, and the loops in
`ensue.events.kernels`) and make typed columns of these places (`places`), without parsing a line as
a whole.
"""
