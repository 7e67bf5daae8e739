"""Tables of the present version, and the library (`tables.cor`) that they were made from."""
