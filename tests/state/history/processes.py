"""Forked processes, each of which runs one function."""

import os
import sys
import traceback
from collections.abc import Callable, Iterable


def fork(run: Callable[[], object]) -> int:
    """Run a function in a forked process. Return its process ID."""
    child = os.fork()
    if child:
        return child
    exit_code = 1
    try:
        run()
        exit_code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        # Not `sys.exit`: the rest of the program belongs to the parent process.
        os._exit(exit_code)


def wait_for_all(children: Iterable[int]) -> None:
    """Wait until these processes have exited. Raise SystemExit if one of them failed."""
    failed = []
    for child in children:
        _, wait_status = os.waitpid(child, 0)
        if wait_status != 0:
            failed.append(child)
    if failed:
        raise SystemExit(f"processes failed: {failed}")
