"""Starter files of the exercises that are about build and process."""
