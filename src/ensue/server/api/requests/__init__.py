"""What every request passes: the gate, its parameters, and problems as answers."""
