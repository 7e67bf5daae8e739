"""Real servers for tests: found on the machine, started on free loopback ports, and stopped.

`install.sh` brings them where it may (Debian, as root); `make test` calls it once. A server runs in
a temporary folder, as a user without rights where the tests run as root. Where one is missing, the
tests that need it are skipped and say so; with CI=true that is a failure.
"""
