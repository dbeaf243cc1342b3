"""The readers of a shared lock: locked means alive, free means dead."""

import os
from pathlib import Path

from sampletool.kit.safety.lock_readers import living_readers, registered
from sampletool.kit.safety.lock_record import describe_me, write_record
from sampletool.kit.testing.holding import holding


def test_a_reader_is_named_while_it_reads_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    with registered(path, describe_me("s-1", "test")):
        assert [record.pid for record, _ in living_readers(path)] == [os.getpid()]

    assert living_readers(path) == []
    assert os.listdir(tmp_path / "lock.readers") == []


def test_what_a_killed_reader_left_is_removed_by_the_next_who_looks(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding(path, "shared") as other:
        other.kill()
    assert len(os.listdir(tmp_path / "lock.readers")) == 1

    assert living_readers(path) == []

    assert os.listdir(tmp_path / "lock.readers") == []


def test_a_reader_that_is_just_registering_is_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "lock.readers"
    directory.mkdir(mode=0o700)
    newborn = directory / ".1-new"
    descriptor = os.open(newborn, os.O_RDWR | os.O_CREAT, 0o600)
    write_record(descriptor, describe_me("s-1", "test"))
    os.close(descriptor)

    living_readers(tmp_path / "lock")

    assert newborn.exists()
