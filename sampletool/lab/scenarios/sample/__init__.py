"""The scenarios that are about build and process."""
