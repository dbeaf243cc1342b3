"""The scenarios that are about shared state."""
