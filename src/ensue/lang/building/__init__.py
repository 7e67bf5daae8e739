"""The parts of the Python builder (`ensue.build`): one module for each part of the language.

Every value has a node of the syntax tree (`.node`) and prints as library text. A bad name, a
negative duration or a text with a line end is refused when the value is made. Whether names and
types fit together is checked by the checker, as for text.
"""
