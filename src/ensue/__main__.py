"""`python -m ensue` is the `ensue` command."""

from ensue.cli import main

if __name__ == "__main__":
    main()
