"""Manage items that many processes change at once."""
