"""Libraries in force: how they come and go, what they hold, and why they have not fired."""
