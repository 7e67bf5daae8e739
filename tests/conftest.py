"""Settings for the whole suite."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# A machine that does other work at the same time is no reason for a property to fail.
settings.register_profile("ensue", deadline=None)
settings.load_profile("ensue")

# A shell that runs the suite in the background lets it ignore Ctrl-C, and so would every command
# that a test starts and then stops that way: it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A Java that runs many small jobs, each of code that was generated for it, gains nothing from the
# compiler for code that stays: the tests take a quarter less time without it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
