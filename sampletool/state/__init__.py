"""Shared state that loses nothing: counters, tasks, and values with versions.

It is on SQLite, PostgreSQL or Redis, or inside one process.
"""

TITLE = "Shared state"
