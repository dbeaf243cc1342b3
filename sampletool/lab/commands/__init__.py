"""Race conditions to look at."""
