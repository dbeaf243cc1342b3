"""Shared state that loses nothing: counters, tasks and versioned values on SQLite, PostgreSQL, Redis and in process."""
