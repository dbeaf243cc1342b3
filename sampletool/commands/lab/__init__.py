"""Race conditions: watch one happen, replay it, and prove it gone."""
