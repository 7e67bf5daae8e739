"""Files of outputs: their format by the ending of their name (`endings`), tables (`tables`), and a
file that appears only once it is whole (`whole_file`)."""
