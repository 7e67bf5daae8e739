"""What an editor can ask of a text: completion, hovers, fixes, renaming, layout, structure."""
