"""Tables of old versions, each beside the library that it was made from. They load for ever."""
