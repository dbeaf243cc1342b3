"""What a holder says about itself, and what is made of a record that nobody should believe."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.safety import lock_record, processes
from sampletool.kit.safety.atomic_file import opened
from sampletool.kit.safety.errors import UnsafeDirectory
from sampletool.kit.safety.lock_record import (
    Record,
    describe_me,
    living_readers,
    read_record,
    registered,
    write_record,
)
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.holding import holding
from tests.kit.safety.test_lock import refusal


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    with opened(tmp_path / "lock", os.O_RDWR | os.O_CREAT) as descriptor:
        yield descriptor


def me() -> Record:
    return describe_me("s-1", "build")


def test_a_record_reads_back_as_written_and_begins_behind_byte_0(descriptor: int) -> None:
    record = me()

    write_record(descriptor, record)

    read = read_record(descriptor)
    assert read is not None
    assert read._replace(started_at="", boot_seconds=0.0) == record
    assert read.started_at > "2026"
    assert read.boot_seconds > 0
    assert os.pread(descriptor, 1, 0) == b"\0"


def test_a_record_is_replaced_in_one_write_and_never_truncated(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: truncating first leaves a moment in which the lock has no holder; 84% of reads met it."""
    write_record(descriptor, me())
    whole, sizes, pwrite = os.fstat(descriptor).st_size, [], os.pwrite

    def watched(file: int, content: bytes, at: int) -> int:
        sizes.append(os.fstat(file).st_size)
        return pwrite(file, content, at)

    monkeypatch.setattr(os, "pwrite", watched)
    write_record(descriptor, me(), 1, "free")

    assert sizes == [whole]
    assert os.fstat(descriptor).st_size == whole


def test_the_age_of_a_hold_does_not_follow_the_clock_on_the_wall(descriptor: int) -> None:
    write_record(descriptor, me())
    record = read_record(descriptor)
    assert record is not None
    aged = record._replace(boot_seconds=record.boot_seconds - 30, started_at="1999-12-31T23:59:59Z")

    age_ms = aged.as_holder("running", verified=True).age_ms

    assert age_ms is not None
    assert 30_000 <= age_ms < 90_000


def test_a_free_record_keeps_how_long_a_hold_takes(descriptor: int) -> None:
    write_record(descriptor, me())

    write_record(descriptor, me(), 1234, "free")

    record = read_record(descriptor)
    assert record is not None
    assert (record.state, record.usual_ms) == ("free", 1234)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 2000,
        b"\xff" * 5000,
        b'\0{"pid": 1}',
        b"\0" + b"00000000 " + b'{"pid":1}'.ljust(1014) + b"\n",
    ],
    ids=["empty", "zeros", "binary", "short", "wrong checksum"],
)
def test_garbage_is_no_record(descriptor: int, content: bytes) -> None:
    os.pwrite(descriptor, content, 0)

    assert read_record(descriptor) is None


def test_one_changed_byte_makes_it_no_record(descriptor: int) -> None:
    write_record(descriptor, me())
    os.pwrite(descriptor, bytes([os.pread(descriptor, 1, 40)[0] ^ 1]), 40)

    assert read_record(descriptor) is None


def test_a_record_of_another_version_is_not_guessed_at(descriptor: int) -> None:
    write_record(descriptor, me()._replace(v=99))

    assert read_record(descriptor) is None


def test_a_reused_pid_is_not_taken_for_the_holder() -> None:
    mine = me()

    assert mine.is_alive()
    assert not mine._replace(start="another boot:1").is_alive()


def _forge(path: Path, record: Record | None) -> None:
    descriptor = os.open(path, os.O_RDWR)
    if record is None:
        os.pwrite(descriptor, b"\0" * 1100, 0)
    else:
        write_record(descriptor, record)
    os.close(descriptor)


def _forged(path: Path, record: Record | None) -> ToolError:
    """What a loser says when the record in a lock file that is held says this."""
    with holding(path) as other:
        _forge(path, record)
        error = refusal(path)
        assert error.context["holder"].pid == other.pid or not error.context["holder"].verified
    return error


def test_a_held_lock_without_a_record_is_named_by_the_kernel_alone(tmp_path: Path) -> None:
    holder = _forged(tmp_path / "lock", None).context["holder"]

    assert holder.verified
    assert holder.command is None


def test_a_record_that_names_a_living_stranger_is_not_believed(tmp_path: Path) -> None:
    holder = _forged(tmp_path / "lock", me()).context["holder"]

    assert holder.pid != os.getpid()


@pytest.mark.parametrize("elsewhere", [{"host": "elsewhere"}, {"pid_namespace": "pid:[1]"}], ids=["host", "container"])
def test_a_holder_of_another_machine_or_container_is_never_looked_up_here(
    tmp_path: Path, elsewhere: dict[str, Any]
) -> None:
    path = tmp_path / "lock"
    with holding(path) as other:
        as_seen_there = me()._replace(pid=other.pid, start=processes.start_of(other.pid), **elsewhere)
        _forge(path, as_seen_there)
        holder = refusal(path).context["holder"]

    assert (holder.pid, holder.state, holder.verified) == (other.pid, "unknown", False)


@pytest.mark.parametrize("boot_seconds", [float("inf"), "x"])
def test_a_record_that_began_at_no_time_is_no_record(
    descriptor: int, boot_seconds: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_record, "boot_seconds", lambda: boot_seconds)
    write_record(descriptor, me())

    assert read_record(descriptor) is None


@pytest.mark.parametrize("nonsense", [{"pid": 1e400}, {"start": 5}, {"command": None}])
def test_a_record_whose_members_make_no_sense_is_no_record(descriptor: int, nonsense: dict[str, Any]) -> None:
    write_record(descriptor, me()._replace(**nonsense))

    assert read_record(descriptor) is None


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


def test_the_records_of_readers_are_neither_read_nor_removed_where_others_may_write(tmp_path: Path) -> None:
    path, planted = tmp_path / "lock", tmp_path / "planted"
    planted.mkdir(mode=0o700)
    (planted / "victim").touch(mode=0o600)
    (tmp_path / "lock.readers").symlink_to(planted)

    assert living_readers(path) == []
    with pytest.raises(UnsafeDirectory), registered(path, me()):
        pass

    assert os.listdir(planted) == ["victim"]


def test_a_reader_whose_file_is_removed_before_it_is_locked_makes_another_one(tmp_path: Path) -> None:
    """Naive: a reader whose record was taken for a dead one's goes on without a name."""
    path = tmp_path / "lock"
    reader = ["-m", holding.__module__, str(path), "shared", "0", ""]
    with SteppedProcess(reader, watch=tmp_path, fork_server=fork_server()) as stepped:
        stepped.run_until(lambda event: event.name == "fcntl.flock" and ".readers" in event.path)

        assert living_readers(path) == []

        stepped.run_until("os.remove", times=2)
        assert [record.pid for record, _ in living_readers(path)] == [stepped.process.pid]
        assert stepped.finish().status == 0
    assert os.listdir(tmp_path / "lock.readers") == []
