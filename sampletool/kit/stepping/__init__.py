"""For tests and the lab only: runs the unmodified program step by step, along a schedule.

Python's own audit events (opening, renaming, locking, …) are the points at which a stepped process stops and waits for
its tracer. The program itself contains no hooks and does not know that it is stepped.
"""
