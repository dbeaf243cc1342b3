"""The model of a power failure: which calls of a program flush its files."""

from pathlib import Path

import pytest

from sampletool.kit.stepping.power_cut import Files, states_after
from sampletool.kit.stepping.tracer import SteppedProcess

REPLACE = """
import os
descriptor = os.open("file", os.O_WRONLY | os.O_TRUNC{flag})
os.write(descriptor, b"new")
{flush}
"""
CREATE = """
import os
descriptor = os.open("file", os.O_WRONLY | os.O_CREAT)
os.write(descriptor, b"new")
{flush}
"""


def states_after_power_cut(directory: Path, source: str) -> list[Files]:
    """Return the possible states of the directory if the power fails after the program."""
    before = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    with SteppedProcess(["-c", source], watch=directory, cwd=directory) as stepped:
        while stepped.next_event is not None:
            stepped.step()
        return list(states_after(before, stepped.past_events, str(directory)))


@pytest.mark.parametrize("flag", [" | os.O_SYNC", " | os.O_DSYNC"])
def test_a_write_to_a_synchronous_file_is_flushed(tmp_path: Path, flag: str) -> None:
    (tmp_path / "file").write_bytes(b"old")

    states = states_after_power_cut(tmp_path, REPLACE.format(flag=flag, flush=""))

    assert states == [{"file": b"new"}]


def test_a_write_to_another_file_may_be_lost(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")

    states = states_after_power_cut(tmp_path, REPLACE.format(flag="", flush=""))

    contents = {state["file"] for state in states}
    assert contents == {b"old", b"", b"n", b"new"}


def test_sync_flushes_files_and_their_names(tmp_path: Path) -> None:
    states = states_after_power_cut(tmp_path, CREATE.format(flush="os.sync()"))

    assert states == [{"file": b"new"}]


def test_fsync_flushes_no_name(tmp_path: Path) -> None:
    states = states_after_power_cut(tmp_path, CREATE.format(flush="os.fsync(descriptor)"))

    assert states == [{"file": b"new"}, {}]


def test_a_file_that_is_renamed_to_its_own_name_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")

    states = states_after_power_cut(tmp_path, "import os; os.rename('file', 'file')")

    assert states == [{"file": b"old"}]
