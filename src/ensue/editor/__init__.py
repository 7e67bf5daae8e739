"""What an editor shows of libraries: names, completion, hovers, renaming, layout; over LSP."""
