"""See which processes hold locks, and release stuck locks."""
