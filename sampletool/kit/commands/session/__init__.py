"""Outputs and logs that calls left behind."""
