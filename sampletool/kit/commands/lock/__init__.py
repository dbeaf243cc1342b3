"""List the locks that are held, and free one that is stuck."""
