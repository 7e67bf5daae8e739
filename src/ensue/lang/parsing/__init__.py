"""From the text of a library to its syntax tree, or to errors in the words of the language.

`files` reads files, `cutting` splits text into definitions, `parser` parses them with the grammar,
and `reading` makes nodes of the parse tree. Of text that does not parse, `recovering` finds further
mistakes, `syntax_errors` words them, and `hints` say what to write instead, from `rewriting` (lines
in the habits of other languages) and `advice`.
"""
