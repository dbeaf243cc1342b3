"""sampletool/state/worker_place.py: the store knows where a killed worker ran its commands."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sampletool.kit.safety.processes import is_running
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.holding import Holding
from sampletool.state.protocol import NewTask, Once
from sampletool.state.store import Store
from sampletool.state.worker_place import LOCK_NAME, WorkerPlace
from tests.state.support.claims import LONG

# The store


def test_a_claim_gets_the_place_of_the_claim_before(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    long_place = "/long" * 1000

    first = store.task_claim("work", "ann", lease_ms=0, count=2, place="here")
    second = store.task_claim("work", "ann", lease_ms=0, place=long_place)
    third = store.task_claim("work", "ann", lease_ms=LONG, count=2, place="there")

    assert first.earlier_places == frozenset()
    assert second.earlier_places == {"here"}
    assert third.earlier_places == {"here", long_place}


def test_a_claim_without_a_place_keeps_the_one_before(store: Store) -> None:
    """Somebody claims the task by hand. The command of the killed worker still runs."""
    store.task_add("work", [NewTask("x", "a")])
    store.task_claim("work", "ann", lease_ms=0, place="here")

    by_hand = store.task_claim("work", "bob", lease_ms=0)
    later = store.task_claim("work", "cid", lease_ms=0)

    assert by_hand.earlier_places == {"here"}
    assert later.earlier_places == {"here"}


def test_a_task_that_is_retried_by_hand_keeps_the_place(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    store.task_claim("work", "ann", lease_ms=0, max_attempts=1, place="here")
    store.task_retry("a")

    claim = store.task_claim("work", "bob", lease_ms=LONG, place="there")

    assert claim.earlier_places == {"here"}


def test_a_replayed_claim_has_the_same_places(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    store.task_claim("work", "ann", lease_ms=0, place="here")
    first = store.task_claim("work", "bob", lease_ms=LONG, once=Once("key"))

    again = store.task_claim("work", "bob", lease_ms=LONG, once=Once("key"))

    assert again.replayed
    assert again.earlier_places == first.earlier_places == {"here"}


# What a place means


@contextmanager
def orphan(lock_path: Path) -> Iterator[int]:
    """Kill a process that has the lock and a child. Yield the pid of the child, and kill it."""
    holder = Holding(lock_path, "shared", child="sleep")
    pid = int(holder.hear()["child"])
    holder.kill()
    try:
        yield pid
    finally:
        if is_running(pid):
            os.kill(pid, 9)


@pytest.mark.leaves_litter
def test_the_orphans_of_a_place_are_ended(tmp_path: Path, signals: Signals) -> None:
    place = WorkerPlace.of_this_machine(tmp_path / LOCK_NAME)
    with orphan(tmp_path / LOCK_NAME) as pid:
        copy = WorkerPlace.from_text(place.to_text())

        assert copy == place
        assert copy.end_orphans(signals) == [pid]


@pytest.mark.leaves_litter
def test_a_place_on_another_machine_means_no_process_of_this_one(
    tmp_path: Path,
    signals: Signals,
) -> None:
    place = WorkerPlace.of_this_machine(tmp_path / LOCK_NAME)
    with orphan(tmp_path / LOCK_NAME) as pid:
        assert replace(place, host="elsewhere").end_orphans(signals) == []
        assert replace(place, pid_namespace="pid:[1]").end_orphans(signals) == []
        assert is_running(pid)


@pytest.mark.leaves_litter
def test_a_place_cannot_name_another_lock(tmp_path: Path, signals: Signals) -> None:
    """Another user of the store may have written it."""
    build_lock = tmp_path / "build.lock"
    link = tmp_path / LOCK_NAME
    link.symlink_to(build_lock)
    with orphan(build_lock) as pid:
        for path in (build_lock, link):
            assert WorkerPlace.of_this_machine(path).end_orphans(signals) == []
        assert is_running(pid)


@pytest.mark.parametrize(
    "text",
    ["", "here", "1", "[1]", '["h","n",1]', '["h","n","workers.lock"]', "[" * 100_000],
)
def test_a_text_that_is_no_place_is_ignored(text: str) -> None:
    assert WorkerPlace.from_text(text) is None


def test_a_place_with_a_path_that_cannot_exist_has_no_orphans(signals: Signals) -> None:
    place = WorkerPlace.of_this_machine(Path(f"/none\0/{LOCK_NAME}"))

    assert place.end_orphans(signals) == []
