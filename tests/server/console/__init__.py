"""The console in a real browser: clicked, typed into and looked at, on a screen and on a phone."""
