"""A second, independent reading of the definitions, to compare the engines with."""
