"""Recorded terminal sessions, for the README, the site and talks."""
