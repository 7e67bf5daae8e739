"""The bytes of inputs: files, folders, patterns and the standard input, plain or compressed.

`open_inputs` makes an `InputFile` of every named file, with its format, its compression and the
delimiter of its cells; `InputFile.open` returns its bytes, unpacked. `growing` reads files that
still grow. Events are made of the bytes in `ensue.events.records` and `ensue.events.files`.
"""

from ensue.events.sources.contents import FORMATS, LINES, delimiter_of
from ensue.events.sources.finding import STDIN
from ensue.events.sources.inputs import InputFile, open_inputs, standard_input, with_content

__all__ = [
    "FORMATS",
    "LINES",
    "STDIN",
    "InputFile",
    "delimiter_of",
    "open_inputs",
    "standard_input",
    "with_content",
]
