"""A point at which the lab can let another worker continue, in code that uses no files itself."""

import os


def stop_here() -> None:
    """Stop the worker until the schedule lets it continue.

    The lab stops a worker only before calls that use files. So this lists the current directory,
    and ignores the names. The scenario has a step with the event `os.listdir` for it.
    """
    os.listdir(".")
