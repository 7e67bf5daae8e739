"""One trial, shown and compared: `python -m tests.agreement KIND SEED [WAY...]`."""

from __future__ import annotations

import sys

from .comparing import main

sys.exit(main(sys.argv[1:]))
