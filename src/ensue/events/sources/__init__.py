"""Which bytes are read: files, folders, patterns and the standard input, plain or compressed.

`open_inputs` makes an `Input` of every file that was named, with its format, its compression and
the delimiter of its cells; `Input.open` gives its bytes, unpacked. `following` reads files that
still grow. What the bytes mean is for `ensue.events.records.reading` and its neighbours to say.
"""

from ensue.events.sources.contents import FORMATS, LINES, delimiter_of
from ensue.events.sources.finding import STDIN
from ensue.events.sources.inputs import Input, open_inputs, standard_input, with_content

__all__ = [
    "FORMATS",
    "LINES",
    "STDIN",
    "Input",
    "delimiter_of",
    "open_inputs",
    "standard_input",
    "with_content",
]
