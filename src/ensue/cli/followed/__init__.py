"""Followed runs whose outputs are kept: they append, and go on after a kill where they were.

`position` is the file that says where a run was, `grown_file` appends without writing anything
twice, `grown_outputs` writes outputs and `journal` ties both to what is read.
"""
