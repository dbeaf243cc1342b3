"""Starter files of the exercises: one file for each race that can be tried with plain files."""
