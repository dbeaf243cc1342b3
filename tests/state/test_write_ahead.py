"""The write-ahead log of SQLite: the cost of a commit, and no commit during a checkpoint."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.file_errors import IoFailure
from sampletool.kit.safety.errors import LockTimeout
from sampletool.state.connect import open_store
from sampletool.state.protocol import Fence, NewTask
from sampletool.state.sqlite import Connection, SqliteStore
from tests.state.support.outcomes import raises
from tests.state.support.store_client import make_policy
from tests.state.support.stores import SharedBackend


@pytest.fixture
def backend(make_backend: Any) -> SharedBackend:
    backend: SharedBackend = make_backend("sqlite")
    return backend


def calls_of_an_addition(url: str, tmp_path: Path) -> Counter[str]:
    """Count the system calls of one more addition to an open store."""
    counted = []
    for times in (1, 31):
        job = [sys.executable, "-m", "tests.state.support.store_client", "count", "0", f"[{times}]"]
        traced = ["strace", "-f", "-e", "trace=file,desc", "-o", str(tmp_path / "log"), *job]
        subprocess.run(
            traced,
            env={**os.environ, "TEST_STORE": url},
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )
        calls = re.findall(r"^\d+ +(\w+)\(", (tmp_path / "log").read_text(), re.MULTILINE)
        counted.append(
            Counter("flush" if call in ("fsync", "fdatasync") else call for call in calls)
        )
    return Counter(
        {
            call: round(number / 30)
            for call, number in (counted[1] - counted[0]).items()
            if number >= 30
        }
    )


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_change_costs_one_flush_and_few_other_calls(
    backend: SharedBackend, tmp_path: Path
) -> None:
    backend.open().counter_add("hits", 1)

    calls = calls_of_an_addition(backend.url, tmp_path)

    assert (calls["flush"], calls["flock"], calls["pread64"]) == (1, 2, 0), calls
    assert calls.total() <= 18, calls


def test_the_log_begins_again_before_it_is_large(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db", make_policy())
    for number in range(200):
        store.task_add("work", [NewTask(number)])

    assert (tmp_path / "state.db-wal").stat().st_size < 260 * 4200
    store.close()


def test_commits_and_checkpoints_happen_under_the_one_lock_of_the_file(tmp_path: Path) -> None:
    """Otherwise, versions 3.7.0 to 3.51.2 can corrupt the log.

    An automatic checkpoint is a part of COMMIT.
    """
    held, seen = [False], []
    policy = make_policy()

    @contextmanager
    def hold(path: Path, name: str, recorded: bool) -> Iterator[None]:
        with policy.hold_lock(path, name, recorded):
            held[0] = True
            yield
            held[0] = False

    class Watched(SqliteStore):
        def _connect(self) -> Connection:
            db = super()._connect()
            db.set_trace_callback(lambda statement: seen.append((statement, held[0])))
            return db

    database = Watched(tmp_path / "state.db", replace(policy, hold_lock=hold))
    store = database
    store.state_set("large", "x" * 5_000_000)
    store.task_add("work", [NewTask(1), NewTask(2)])
    (task,) = store.task_claim("work", "ann", lease_ms=60_000).tasks
    store.task_claim("work", "ann", lease_ms=60_000, finish=[Fence(task.id, task.generation)])
    store.task_list(None, None, 0, 9)
    store.health()

    changing = [
        (said, was)
        for said, was in seen
        if said.startswith(("BEGIN", "COMMIT", "PRAGMA journal_mode ="))
    ]
    assert {said for said, _ in changing} == {
        "BEGIN IMMEDIATE",
        "COMMIT",
        "PRAGMA journal_mode = WAL",
    }
    assert [said for said, was in changing if not was] == []
    assert store.health().settings == {"journal_mode": "wal", "synchronous": "full"}
    store.close()


def test_every_spelling_of_a_path_means_the_same_lock(tmp_path: Path) -> None:
    asked, policy = [], make_policy()

    @contextmanager
    def hold(path: Path, name: str, recorded: bool) -> Iterator[None]:
        asked.append(path)
        with policy.hold_lock(path, name, recorded):
            yield

    here = tmp_path / "here"
    (here / ".tool").mkdir(parents=True, mode=0o700)
    (tmp_path / "link").symlink_to(here)
    directory = f"sqlite://{tmp_path}/here/.tool"
    urls = [
        None,
        f"{directory}/state.db",
        f"{directory}/../.tool/state.db",
        f"sqlite://{tmp_path}/link/.tool/state.db",
    ]

    for url in urls:
        store = open_store(url, here, replace(policy, hold_lock=hold))
        store.counter_add("hits", 1)
        store.close()

    assert set(asked) == {here / ".tool" / ".state.db.lock"}
    assert len(asked) == len(urls)


def test_a_paused_writer_is_named_also_when_it_has_written_no_record(
    backend: SharedBackend,
) -> None:
    store = backend.open(patience=0.3)
    writer = backend.start("stop_before_the_second_commit", 0)
    writer.wait_until_ready()
    writer.go()
    assert writer.wait_until_stopped()

    with raises(LockTimeout) as held:
        store.counter_add("hits", 1)

    holder = held.value.owners.holders[0]
    assert (holder.pid, holder.verified) == (writer.process.pid, True)
    os.kill(writer.process.pid, signal.SIGCONT)
    assert writer.result() == 2


@pytest.mark.parametrize("is_replaced", [False, True])
def test_nothing_is_acknowledged_that_went_into_a_removed_file(
    backend: SharedBackend, is_replaced: bool
) -> None:
    store, path = backend.open(), Path(backend.url.removeprefix("sqlite://"))
    store.counter_add("hits", 1)
    path.rename(path.with_name("moved"))
    if is_replaced:
        backend.open().counter_add("hits", 5)

    with raises(IoFailure, match="removed or replaced"):
        store.counter_add("hits", 1)
