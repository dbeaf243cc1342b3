"""Inventory."""
