"""Settings for the whole suite."""

from __future__ import annotations

from hypothesis import settings

# A machine that does other work at the same time is no reason for a property to fail.
settings.register_profile("ensue", deadline=None)
settings.load_profile("ensue")
