"""Run an unmodified program step by step, along a schedule. This is only for tests and the lab.

Python's own audit events (opening, renaming, locking and so on) are the points at which a stepped
process stops and waits for its tracer. The program itself contains no hooks, and cannot notice that
it is stepped.
"""
