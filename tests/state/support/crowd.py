"""Many clients of a store at once: `python -m tests.state.support.crowd KIND JOB COUNT ARGS`.

Each client is a process with a connection of its own. This process forks them, after it has loaded
what they need. All of them start at the same moment. This process prints what their jobs returned.
"""

import json
import os
import random
import sys
from importlib import import_module

from sampletool.state.connect import open_store
from tests.state import jobs
from tests.state.support.store_client import Awaited, make_policy, run, tell

_DRIVERS = {"sqlite": "sqlite", "postgres": "postgres", "valkey": "redis"}


def main(kind: str, job: str, count: str, args: str) -> None:
    import_module(f"sampletool.state.{_DRIVERS[kind]}")
    # The clients wait until this pipe ends.
    start_descriptor, keep_waiting = os.pipe()
    outputs = []
    for number in range(int(count)):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(keep_waiting)
            os.dup2(writing, sys.stdout.fileno())
            random.seed()
            _run_client(start_descriptor, job, number, args)
        os.close(writing)
        outputs.append(os.fdopen(reading))
    for output in outputs:
        assert output.readline() == "ready\n"
    os.close(keep_waiting)
    results = [json.loads(output.read()) for output in outputs]
    for _ in outputs:
        _pid, wait_status = os.wait()
        assert wait_status == 0
    tell(json.dumps(results))


def _run_client(start_descriptor: int, job: str, number: int, args: str) -> None:
    """Wait for the start, run the job, and exit."""
    exit_code = 1
    try:
        store = open_store(os.environ["TEST_STORE"], None, make_policy())
        tell("ready")
        os.read(start_descriptor, 1)
        work = getattr(jobs, job)(Awaited(store), number, *json.loads(args))
        tell(json.dumps(run(work)))
        store.close()
        exit_code = 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(exit_code)


if __name__ == "__main__":
    main(*sys.argv[1:])
