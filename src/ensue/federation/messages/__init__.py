"""Events on their way between services: the common event, attributes, and forms as messages."""
