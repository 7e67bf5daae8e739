"""Rows packed for the shuffle, one value for many: made, unpacked and run."""
