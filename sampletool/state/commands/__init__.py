"""State and work that many calls share."""
