"""The tests of the example part."""
