"""Text files as chunks: `json_lines` and `csv_rows`.

Both cut a file into blocks of whole records (`blocks`), have a library parse each block
(`json_columns`, `csv_cells`), and make typed columns of what it finds (`found`).
"""
