"""The tests of its commands."""
