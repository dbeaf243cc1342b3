"""Settings, locks, sessions and this machine."""
