"""Real servers for tests: on the loopback interface, started and stopped by the tests."""
