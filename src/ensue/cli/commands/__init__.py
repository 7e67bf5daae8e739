"""The commands of `ensue`, one module each."""
