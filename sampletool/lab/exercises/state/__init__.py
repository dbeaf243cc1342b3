"""Starter files of the exercises that are about shared state."""
