"""Books."""
