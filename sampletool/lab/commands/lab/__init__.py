"""Race conditions: watch one happen, prove it gone."""
