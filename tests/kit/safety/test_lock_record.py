"""The records of holders: how they are written, and which ones are believed."""

import json
import math
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.safety import lock_record, processes
from sampletool.kit.safety.atomic_file import opened
from sampletool.kit.safety.errors import UnsafeDirectory
from sampletool.kit.safety.holder import Holder
from sampletool.kit.safety.lock_record import (
    Record,
    describe_me,
    listed_as_reader,
    living_readers,
    read_record,
    reader_directory_of,
    write_record,
)
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.failing import failure_in, failure_of, outcome_of
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.holding import holding
from tests.kit.safety.test_lock import refusal

RECORD_OF_0_2 = (
    b"\0"
    b"9fe0cb11 "
    b'{"pid":4121,"start":"1f0c5b2e:987654","host":"build-1","pid_namespace":"pid:[4026531836]",'
    b'"session_id":"s-1","command":"build","started_at":"2026-01-31T09:30:00Z",'
    b'"boot_seconds":98765.25,"state":"free","usual_ms":1234,"v":1}'
)
"""The beginning of a lock file that version 0.2 wrote. Spaces and a newline follow."""


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    with opened(tmp_path / "lock", os.O_RDWR | os.O_CREAT) as descriptor:
        yield descriptor


def me() -> Record:
    """Return the record of this process. Describing it may not cause an error."""
    record = outcome_of(lambda: describe_me("s-1", "build"))

    assert isinstance(record, Record)
    return record


def written(descriptor: int) -> Record:
    """Return the record in this file, which has one."""
    record = read_record(descriptor)
    assert record is not None
    return record


def is_rejected(descriptor: int) -> bool:
    """Return whether there is no record in this file. No content may cause an error."""
    records: list[Record | None] = []

    error = failure_of(lambda: records.append(read_record(descriptor)))

    assert error is None
    return records == [None]


def living(lock_path: Path) -> list[tuple[Record, os.stat_result]]:
    """Return the living readers. Nothing in the place of their directory may cause an error."""
    readers: list[tuple[Record, os.stat_result]] = []

    error = failure_of(lambda: readers.extend(living_readers(lock_path)))

    assert error is None
    return readers


def living_pids(lock_path: Path) -> list[int]:
    return [record.pid for record, _ in living(lock_path)]


def write_text(descriptor: int, text: bytes) -> None:
    """Write a block with this text and the right checksum."""
    padded = text.ljust(1014)
    os.pwrite(descriptor, b"\0%08x " % zlib.crc32(padded) + padded + b"\n", 0)


# Writing and reading


def test_a_record_is_read_as_it_was_written_and_byte_0_is_not_used(descriptor: int) -> None:
    record = me()

    write_record(descriptor, record)

    read = written(descriptor)
    assert replace(read, started_at="", boot_seconds=0.0) == record
    assert read.started_at > "2026"
    assert read.boot_seconds > 0
    assert os.pread(descriptor, 1, 0) == b"\0"


def test_a_process_describes_itself() -> None:
    record = me()

    assert record == Record(
        pid=os.getpid(),
        start=processes.start_of(os.getpid()),
        host=os.uname().nodename,
        pid_namespace=processes.pid_namespace(),
        session_id="s-1",
        command="build",
    )


def test_a_record_of_version_0_2_is_read(descriptor: int) -> None:
    os.pwrite(descriptor, RECORD_OF_0_2.ljust(1024) + b"\n", 0)

    assert read_record(descriptor) == Record(
        pid=4121,
        start="1f0c5b2e:987654",
        host="build-1",
        pid_namespace="pid:[4026531836]",
        session_id="s-1",
        command="build",
        started_at="2026-01-31T09:30:00Z",
        boot_seconds=98765.25,
        state="free",
        usual_ms=1234,
        v=1,
    )


def test_a_record_is_written_in_the_format_that_version_0_2_reads(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_record, "boot_seconds", lambda: 98765.25)
    monkeypatch.setattr(lock_record, "utc", lambda: "2026-01-31T09:30:00Z")
    record = Record(
        pid=4121,
        start="1f0c5b2e:987654",
        host="build-1",
        pid_namespace="pid:[4026531836]",
        session_id="s-1",
        command="build",
    )

    error = failure_of(lambda: write_record(descriptor, record, usual_ms=1234, state="free"))

    assert error is None
    assert os.pread(descriptor, 2000, 0) == RECORD_OF_0_2.ljust(1024) + b"\n"


def test_the_types_on_disk_are_those_of_the_fields() -> None:
    assert {field.name: field.type for field in fields(Record)} == lock_record._FIELD_TYPES


def test_a_record_is_replaced_in_one_write_and_never_truncated(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it were truncated first, a reader could meet an empty file. 84% of the reads did."""
    write_record(descriptor, me())
    size = os.fstat(descriptor).st_size
    sizes_before_writes = []
    really_pwrite = os.pwrite

    def watched(file: int, content: bytes, offset: int) -> int:
        sizes_before_writes.append(os.fstat(file).st_size)
        return really_pwrite(file, content, offset)

    monkeypatch.setattr(os, "pwrite", watched)
    write_record(descriptor, me(), usual_ms=1, state="free")

    assert sizes_before_writes == [size]
    assert os.fstat(descriptor).st_size == size


def test_a_free_record_keeps_how_long_a_hold_takes(descriptor: int) -> None:
    write_record(descriptor, me())

    write_record(descriptor, me(), usual_ms=1234, state="free")

    record = written(descriptor)
    assert (record.state, record.usual_ms) == ("free", 1234)


def test_a_record_that_is_too_long_for_its_block_is_not_read(descriptor: int) -> None:
    write_record(descriptor, describe_me("s-1", "x" * 2000))
    assert is_rejected(descriptor)

    write_record(descriptor, me())
    assert written(descriptor).command == "build"


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
def test_garbage_is_not_a_record(descriptor: int, content: bytes) -> None:
    os.pwrite(descriptor, content, 0)

    assert is_rejected(descriptor)


def test_a_record_with_one_changed_byte_is_rejected(descriptor: int) -> None:
    write_record(descriptor, me())
    byte = os.pread(descriptor, 1, 40)[0]

    os.pwrite(descriptor, bytes([byte ^ 1]), 40)

    assert is_rejected(descriptor)


@pytest.mark.parametrize("missing_bytes", [1, 500])
def test_a_record_that_is_cut_short_is_rejected(descriptor: int, missing_bytes: int) -> None:
    write_record(descriptor, me())

    os.ftruncate(descriptor, os.fstat(descriptor).st_size - missing_bytes)

    assert is_rejected(descriptor)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"{}", b"null", b'"pid"', b"[" * 1014, b"\xff"],
    ids=["empty", "incomplete", "list", "no keys", "null", "text", "deep", "not UTF-8"],
)
def test_a_text_that_is_not_a_record_is_rejected_although_its_checksum_is_right(
    descriptor: int,
    text: bytes,
) -> None:
    write_text(descriptor, text)

    assert is_rejected(descriptor)


def test_a_record_of_another_version_is_rejected(descriptor: int) -> None:
    write_record(descriptor, replace(me(), v=99))

    assert is_rejected(descriptor)


@pytest.mark.parametrize("name", [field.name for field in fields(Record)])
def test_a_record_without_one_of_its_keys_is_rejected(descriptor: int, name: str) -> None:
    content = asdict(replace(me(), boot_seconds=1.5))
    write_text(descriptor, json.dumps(content).encode())
    assert not is_rejected(descriptor)

    del content[name]
    write_text(descriptor, json.dumps(content).encode())

    assert is_rejected(descriptor)


def test_a_record_with_an_unknown_key_is_rejected(descriptor: int) -> None:
    content = {**asdict(me()), "other": 1}

    write_text(descriptor, json.dumps(content).encode())

    assert is_rejected(descriptor)


@pytest.mark.parametrize("boot_seconds", [math.inf, math.nan, "x"])
def test_a_record_from_which_no_age_can_be_calculated_is_rejected(
    descriptor: int, boot_seconds: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_record, "boot_seconds", lambda: boot_seconds)
    write_record(descriptor, me())

    assert is_rejected(descriptor)


@pytest.mark.parametrize("wrong", [{"pid": math.inf}, {"start": 5}, {"command": None}])
def test_a_record_with_a_value_of_another_type_is_rejected(
    descriptor: int,
    wrong: dict[str, Any],
) -> None:
    write_record(descriptor, replace(me(), **wrong))

    assert is_rejected(descriptor)


# What a record says about its writer


def test_the_age_of_a_hold_does_not_depend_on_the_time_of_day(descriptor: int) -> None:
    write_record(descriptor, me())
    record = written(descriptor)
    old = replace(
        record,
        boot_seconds=record.boot_seconds - 30,
        started_at="1999-12-31T23:59:59Z",
    )

    age_ms = old.as_holder("running", verified=True).age_ms

    assert age_ms is not None
    assert 30_000 <= age_ms < 90_000


def test_a_holder_has_the_facts_of_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_record, "boot_seconds", lambda: 98767.75)
    record = Record(
        pid=4121,
        start="1f0c5b2e:987654",
        host="build-1",
        pid_namespace="pid:[4026531836]",
        session_id="s-1",
        command="build",
        started_at="2026-01-31T09:30:00Z",
        boot_seconds=98765.25,
    )

    holder = outcome_of(lambda: record.as_holder("orphaned", verified=True, children=(12, 13)))

    assert holder == Holder(
        pid=4121,
        state="orphaned",
        verified=True,
        host="build-1",
        command="build",
        session_id="s-1",
        started_at="2026-01-31T09:30:00Z",
        age_ms=2500,
        children=(12, 13),
    )


def test_another_process_with_the_same_pid_is_not_the_writer() -> None:
    mine = me()

    assert mine.is_alive()
    assert not replace(mine, start="another boot:1").is_alive()


def test_a_writer_without_a_known_start_is_recognized_by_its_pid() -> None:
    assert replace(me(), start=None).is_alive()


def test_a_writer_whose_pid_is_unused_is_not_alive() -> None:
    unused_pid = 2**31 - 1  # larger than any pid

    assert not replace(me(), pid=unused_pid).is_alive()
    assert not replace(me(), pid=unused_pid, start=None).is_alive()


@pytest.mark.parametrize("elsewhere", [{"host": "elsewhere"}, {"pid_namespace": "pid:[1]"}])
def test_a_record_of_another_machine_or_container_is_not_local(elsewhere: dict[str, Any]) -> None:
    assert me().is_local()
    assert not replace(me(), **elsewhere).is_local()


# What the others say about a holder whose record is wrong


def forge(path: Path, record: Record | None) -> None:
    """Replace the record in a lock file, or overwrite it with zeros."""
    with opened(path, os.O_RDWR) as descriptor:
        if record is None:
            os.pwrite(descriptor, b"\0" * 1100, 0)
        else:
            write_record(descriptor, record)


def refusal_with_forged_record(path: Path, record: Record | None) -> ToolError:
    """Return the error of a caller that asks for a held lock while its file has this record."""
    with holding(path) as other:
        forge(path, record)
        error = refusal(path)
        holder = error.context["holder"]
        assert holder.pid == other.pid or not holder.verified
    return error


def test_the_kernel_alone_names_the_holder_of_a_lock_without_a_record(tmp_path: Path) -> None:
    holder = refusal_with_forged_record(tmp_path / "lock", None).context["holder"]

    assert holder.verified
    assert holder.command is None


def test_a_record_that_names_another_living_process_is_not_believed(tmp_path: Path) -> None:
    holder = refusal_with_forged_record(tmp_path / "lock", me()).context["holder"]

    assert holder.pid != os.getpid()


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "elsewhere"}, {"pid_namespace": "pid:[1]"}],
    ids=["host", "container"],
)
def test_the_pid_of_a_holder_on_another_machine_or_in_another_container_means_nothing_here(
    tmp_path: Path, elsewhere: dict[str, Any]
) -> None:
    path = tmp_path / "lock"
    with holding(path) as other:
        start = processes.start_of(other.pid)
        forge(path, replace(me(), pid=other.pid, start=start, **elsewhere))

        holder = refusal(path).context["holder"]

    assert (holder.pid, holder.state, holder.verified) == (other.pid, "unknown", False)


# Readers


def test_a_reader_is_named_while_it_reads_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    with listed_as_reader(path, describe_me("s-1", "test")):
        assert living_pids(path) == [os.getpid()]

    assert living_pids(path) == []
    assert os.listdir(tmp_path / "lock.readers") == []


def test_readers_are_listed_by_age_with_the_status_of_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    starts = iter([30.5, 10.5, 20.5])
    monkeypatch.setattr(lock_record, "boot_seconds", lambda: next(starts))

    with (
        listed_as_reader(path, describe_me("s-1", "last")) as last,
        listed_as_reader(path, describe_me("s-2", "first")) as first,
        listed_as_reader(path, describe_me("s-3", "second")) as second,
    ):
        inodes = [os.fstat(descriptor).st_ino for descriptor in (first, second, last)]
        # The order of the names in a directory is arbitrary. Without sorting, it could be right.
        for names in permutations(os.listdir(reader_directory_of(path))):
            with monkeypatch.context() as patched:
                patched.setattr(os, "listdir", lambda _directory, names=names: names)
                readers = living(path)

            assert [record.command for record, _ in readers] == ["first", "second", "last"]
            assert [file.st_ino for _, file in readers] == inodes


def test_a_lock_that_was_never_shared_has_no_readers(tmp_path: Path) -> None:
    assert living_pids(tmp_path / "lock") == []
    assert not reader_directory_of(tmp_path / "lock").exists()


def test_the_file_of_a_killed_reader_is_removed_by_the_next_process_that_looks(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    with holding(path, "shared") as other:
        other.kill()
    assert len(os.listdir(tmp_path / "lock.readers")) == 1

    assert living_pids(path) == []

    assert os.listdir(tmp_path / "lock.readers") == []


def test_a_reader_that_has_not_written_its_record_yet_is_not_listed_and_keeps_its_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    with listed_as_reader(path, me()) as descriptor:
        os.ftruncate(descriptor, 0)

        assert living_pids(path) == []

        assert len(os.listdir(reader_directory_of(path))) == 1


def test_a_reader_creates_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [b"abcd"]

    def random_name(_length: int) -> bytes:
        assert names, "it created another file"
        return names.pop()

    monkeypatch.setattr(os, "urandom", random_name)

    error = failure_in(listed_as_reader(tmp_path / "lock", me()))

    assert error is None
    assert names == []


def test_a_reader_does_not_use_a_file_that_is_already_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "lock"
    monkeypatch.setattr(os, "urandom", lambda _length: b"abcd")
    with listed_as_reader(path, me()):
        error = failure_in(listed_as_reader(path, me()))
        pids = living_pids(path)

    assert isinstance(error, FileExistsError)
    assert pids == [os.getpid()]


@pytest.mark.leaves_litter
def test_one_file_that_cannot_be_opened_does_not_hide_the_other_readers(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with listed_as_reader(path, me()):
        (reader_directory_of(path) / "0-link").symlink_to(tmp_path / "nowhere")
        (reader_directory_of(path) / "z-link").symlink_to(tmp_path / "nowhere")

        assert living_pids(path) == [os.getpid()]


@pytest.mark.leaves_litter
def test_a_link_to_the_file_of_a_reader_is_not_another_reader(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with listed_as_reader(path, me()):
        [name] = os.listdir(reader_directory_of(path))
        (reader_directory_of(path) / "link").symlink_to(name)

        pids = living_pids(path)

    assert pids == [os.getpid()]


def test_a_file_in_place_of_the_directory_of_readers_contains_no_readers(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    reader_directory_of(path).touch()

    pids = living_pids(path)

    assert pids == []


def test_reader_files_are_neither_read_nor_removed_if_others_may_write_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    planted = tmp_path / "planted"
    planted.mkdir(mode=0o700)
    (planted / "victim").touch(mode=0o600)
    reader_directory_of(path).symlink_to(planted)

    assert living_pids(path) == []
    with pytest.raises(UnsafeDirectory), listed_as_reader(path, me()):
        pass

    assert os.listdir(planted) == ["victim"]


def test_a_reader_whose_file_is_removed_before_it_is_locked_creates_another_one(
    tmp_path: Path,
) -> None:
    """Without the check, a reader that was taken for a killed one could not be named."""
    path = tmp_path / "lock"
    reader = ["-m", holding.__module__, str(path), "shared", "0", ""]
    with SteppedProcess(reader, watch=tmp_path, fork_server=fork_server()) as stepped:
        stepped.run_until(lambda event: event.name == "fcntl.flock" and ".readers" in event.path)

        assert living_pids(path) == []

        stepped.run_until("os.remove", times=2)
        assert living_pids(path) == [stepped.process.pid]
        assert stepped.finish().status == 0
    assert os.listdir(tmp_path / "lock.readers") == []
