"""The commands for state and work that many processes share."""
