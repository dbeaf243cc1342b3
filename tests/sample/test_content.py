"""A file is read again only if it may have changed."""

import os
import time
from pathlib import Path

import pytest

from sampletool.sample.publish import look_at


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock runs an hour ahead, so that what was just written is old."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 3600 * 10**9)


@pytest.mark.usefixtures("later")
def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    before = look_at(path)

    assert look_at(path, before, lambda: pytest.fail("it was read again")) == before


@pytest.mark.usefixtures("later")
def test_a_changed_file_is_read_again_also_with_the_same_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    before = look_at(path)
    times = path.stat()
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert look_at(path, before)[0] != before[0]


def test_a_file_that_was_just_changed_is_read_again_and_reading_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    before = look_at(path)

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        look_at(path, before, stop)


def test_a_racy_change_within_one_time_stamp_is_seen(tmp_path: Path) -> None:
    """Two changes may share a time stamp: what was looked at within two seconds of a change is read again."""
    path = tmp_path / "file"
    path.write_text("one")
    before = look_at(path)
    with path.open("r+b") as file:
        file.write(b"two")

    assert look_at(path, before)[0] != before[0]
