"""See which processes hold which locks, and free a lock that is stuck."""
