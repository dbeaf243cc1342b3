"""Readers see the old text or the new text, never half, also after kill -9 and after a power cut."""

import errno
import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampletool.kit.contract.file_errors import UnsafePath
from sampletool.kit.safety.atomic_file import read_regular, replace, sweep
from sampletool.kit.stepping.power_cut import Files, crash_states, states_after
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.scale import scale

_REPLACE = """
import sys
from pathlib import Path
from sampletool.kit.safety import atomic_file
atomic_file.replace(Path(sys.argv[1]), b"new")
"""
_IN_PLACE = "import os, sys\nd = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)\nos.write(d, b'new')\n"
_RENAME_ONLY = (
    "import os, sys\nd = os.open(sys.argv[1] + '.tmp', os.O_WRONLY | os.O_CREAT)\nos.write(d, b'new')\n"
    "os.rename(sys.argv[1] + '.tmp', sys.argv[1])\n"
)
_NO_DIRECTORY = _REPLACE.replace("atomic_file.replace", "atomic_file.flush_directory = repr\natomic_file.replace")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "on stage").mkdir()
    (tmp_path / "on stage" / "file").write_bytes(b"old")
    return tmp_path / "on stage"


def run_stepped(directory: Path, code: str) -> SteppedProcess:
    script = directory.parent / "script.py"
    script.write_text(code)
    return SteppedProcess([str(script), str(directory / "file")], watch=directory)


def test_a_reader_never_sees_half_a_file(directory: Path) -> None:
    texts = {b"a" * 100_000, b"b" * 70_000}
    path = directory / "file"
    replace(path, min(texts))
    seen = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(scale(100, 2000)):
        replace(path, sorted(texts)[turn % 2])
    done.set()
    reader.join()

    assert seen <= texts


def test_kill_9_before_any_step_leaves_the_old_or_the_new_file(directory: Path) -> None:
    steps = 0
    outcomes = set()
    while True:
        (directory / "file").write_bytes(b"old")
        with run_stepped(directory, _REPLACE) as stepped:
            for _ in range(steps):
                stepped.step()
            if stepped.at is None:
                break
            stepped.kill()
        outcomes.add((directory / "file").read_bytes())
        sweep(directory / "file")
        assert os.listdir(directory) == ["file"]
        steps += 1

    assert steps >= 6
    assert outcomes == {b"old", b"new"}


@pytest.mark.parametrize(
    ("code", "on_the_way", "in_the_end"),
    [
        (_IN_PLACE, {b"old", b"", b"n", b"new"}, {b"old", b"", b"n", b"new"}),
        (_RENAME_ONLY, {b"old", b"", b"n", b"new"}, {b"old", b"", b"n", b"new"}),
        (_NO_DIRECTORY, {b"old", b"new"}, {b"old", b"new"}),
        (_REPLACE, {b"old", b"new"}, {b"new"}),
    ],
    ids=["naive: written in place", "naive: renamed, never flushed", "naive: directory not flushed", "ours"],
)
def test_a_power_cut_at_any_moment(directory: Path, code: str, on_the_way: set[bytes], in_the_end: set[bytes]) -> None:
    with run_stepped(directory, code) as stepped:
        while stepped.at is not None:
            stepped.step()

    def contents(states: Iterator[Files]) -> set[bytes]:
        return {state.get("file", b"missing") for state in states}

    after_any_crash = contents(crash_states({"file": b"old"}, stepped.past, str(directory)))
    when_it_said_ok = contents(states_after({"file": b"old"}, stepped.past, str(directory)))

    assert after_any_crash == on_the_way
    assert when_it_said_ok == in_the_end


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("step", ["open", "os.write", "os.fsync", "os.rename"])
def test_a_failing_step_leaves_the_old_file_and_no_litter(directory: Path, step: str, number: int) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        stepped.run_until(step)
        stepped.fail(number)
        ended = stepped.finish()

    assert ended.status == 1
    assert os.strerror(number).encode() in ended.stderr
    assert os.listdir(directory) == ["file"]
    assert (directory / "file").read_bytes() == b"old"


def test_mode_and_attributes_are_kept(directory: Path) -> None:
    path = directory / "file"
    path.chmod(0o640)
    attributes = sys.platform == "linux"
    if attributes:
        os.setxattr(path, "user.origin", b"here")

    replace(path, b"new")

    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert not attributes or os.getxattr(path, "user.origin") == b"here"


def test_a_new_file_is_private(directory: Path) -> None:
    replace(directory / "another", b"secret")

    assert stat.S_IMODE((directory / "another").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["fifo", "directory", "device"])
def test_only_regular_files_are_read(directory: Path, kind: str) -> None:
    path = directory / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path = Path("/dev/zero")

    with pytest.raises(UnsafePath):
        read_regular(path, 1000)


def test_a_huge_file_is_refused_without_reading_it(directory: Path) -> None:
    with (directory / "huge").open("wb") as file:
        file.truncate(5 * 2**30)

    with pytest.raises(UnsafePath, match="larger"):
        read_regular(directory / "huge", 1000)
