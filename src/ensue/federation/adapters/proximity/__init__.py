"""Events that are valid near a place, for subscribers that move (the paper's STEAM)."""
