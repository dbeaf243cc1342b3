"""Runs a foreign command many times at once, and says what it lost. Knows nothing of what is inside it."""

TITLE = "Other tools"
