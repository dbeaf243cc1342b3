"""Test whether other tools may run in parallel."""
