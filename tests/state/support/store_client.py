"""A client of a store: `python -m tests.state.support.store_client JOB NUMBER ARGS`.

The client prints `ready` and waits until its stdin ends. Then it runs one job of
tests/state/jobs.py, and prints what the job returned.
"""

import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.lock_record import describe_me
from sampletool.kit.safety.signals import Signals
from sampletool.state.connect import open_store
from sampletool.state.retry_policy import MIN_SERVER_SECONDS, RetryPolicy
from sampletool.state.store import Store
from tests.state import jobs


def make_policy(
    *,
    patience: float = 10.0,
    min_server_seconds: float = MIN_SERVER_SECONDS,
    dry_run: bool = False,
    warnings: list[str] | None = None,
) -> RetryPolicy:
    signals = Signals()
    me = describe_me("test", "test")

    def hold(path: Path, name: str, recorded: bool) -> Any:
        return Lock(path, name, me, signals).exclusively(patience, recorded=recorded)

    def warn(code: str, message: str) -> None:
        if warnings is not None:
            warnings.append(f"{code}: {message}")

    return RetryPolicy(
        hold_lock=hold,
        signals=signals,
        warn=warn,
        requested_wait_seconds=patience,
        min_server_seconds=min_server_seconds,
        dry_run=dry_run,
    )


class Awaited:
    """A store whose verbs are coroutines that never have to wait, as a job calls them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any, **options: Any) -> Any:
            return getattr(self._store, verb)(*args, **options)

        return call


def run(job: Coroutine[Any, Any, Any]) -> Any:
    """Run a job that never waits, and return its result.

    Importing an event loop would take longer than the job.
    """
    try:
        job.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("the job waits for something")


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(job: str, number: str, args: str) -> None:
    store = open_store(os.environ["TEST_STORE"], None, make_policy())
    tell("ready")
    sys.stdin.buffer.read()
    work = getattr(jobs, job)(Awaited(store), int(number), *json.loads(args))
    tell(json.dumps(run(work)))
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
