"""Race conditions: watch one happen, and check that a fix holds."""
