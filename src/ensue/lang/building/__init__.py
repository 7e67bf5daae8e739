"""The parts of the Python builder (`ensue.build`): one module for each part of the language.

Every value holds a node of the syntax tree (`.node`) and prints as library text. What Python can
see to be wrong (a bad name, a negative duration, a text with a line end) is refused when the value
is made; whether names and types fit together is the checker's part, as it is for text.
"""
