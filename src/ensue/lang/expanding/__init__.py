"""From a library as it is written to the rules that run: parameters with values, uses as rules.

`parameters` has the values of parameters and puts them into rules; `uses` makes a rule of each use;
`expansion` does both for a whole library. Imports are resolved before, where files are read
(`ensue.lang.parsing.importing`). Behind this everything works with event types and rules alone.
"""
