"""Values, counters and tasks that many processes share."""
