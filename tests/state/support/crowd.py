"""Many clients of a shared store at once: `python -m tests.state.support.crowd KIND JOB COUNT ARGS`.

Each is a process of its own with a connection of its own, forked by this one, which has loaded what they need. All are
let go at the same moment. It says what their jobs returned.
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
    waiting, let_go = os.pipe()
    outputs = []
    for number in range(int(count)):
        reading, writing = os.pipe()
        if not os.fork():
            os.close(let_go)
            os.dup2(writing, sys.stdout.fileno())
            random.seed()
            _be_one(waiting, job, number, args)
        os.close(writing)
        outputs.append(os.fdopen(reading))
    for output in outputs:
        assert output.readline() == "ready\n"
    os.close(let_go)
    said = [output.read() for output in outputs]
    assert all(os.wait()[1] == 0 for _ in outputs)
    tell(json.dumps([json.loads(text) for text in said]))


def _be_one(waiting: int, job: str, number: int, args: str) -> None:
    status = 1
    try:
        store = open_store(os.environ["TEST_STORE"], None, make_policy())
        tell("ready")
        os.read(waiting, 1)
        tell(json.dumps(run(getattr(jobs, job)(Awaited(store), number, *json.loads(args)))))
        store.close()
        status = 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
