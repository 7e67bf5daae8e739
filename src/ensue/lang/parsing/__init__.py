"""From the text of a library to its syntax tree, or to errors in a person's words."""
