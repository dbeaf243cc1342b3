"""For agents."""
