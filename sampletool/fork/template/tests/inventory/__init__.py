"""The example's tests: replace them with it."""
