"""Readers see the old text or the new text, never half, also after kill -9 and after a power cut."""

import errno
import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampletool.kit.safety.atomic_file import create, read_regular, replace, sweep
from sampletool.kit.safety.errors import UnsafePath
from sampletool.kit.stepping.power_cut import Files, crash_states, states_after
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.forked import fork_server, run_python
from sampletool.kit.testing.scale import scale
from tests.kit.failing import failure_of

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
    return SteppedProcess([str(script), str(directory / "file")], watch=directory, fork_server=fork_server())


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
    for turn in range(scale(30, 2000)):
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
    assert not attributes or "user.origin" in os.listxattr(path)
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


def test_what_comes_after_the_rename_fails_and_the_change_is_said_to_be_there(directory: Path) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        stepped.run_until("os.rename")
        stepped.run_until("os.fsync")
        stepped.fail(errno.ENOSPC)
        ended = stepped.finish()

    assert b"NotFlushed" in ended.stderr
    assert b"no space left on device" in ended.stderr
    assert os.listdir(directory) == ["file"]
    assert (directory / "file").read_bytes() == b"new"


def test_two_writers_at_once_do_not_meet_in_one_temporary_file(directory: Path) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        stepped.run_until("os.rename")
        failure = failure_of(lambda: replace(directory / "file", b"from another"))
        ended = stepped.finish()

    assert failure is None
    assert (ended.status, ended.stderr) == (0, b"")
    assert (directory / "file").read_bytes() == b"new"


def test_mode_and_owner_are_on_the_disk_before_the_name_is(directory: Path) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        while stepped.at is not None:
            stepped.step()

    names = [event.name for event in stepped.past if event.path.endswith((".tmp", "/file"))]
    assert names.index("os.chmod") < names.index("os.fsync") < names.index("os.rename")


_CUT = """
import resource, sys
from pathlib import Path
from sampletool.kit.safety import atomic_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
atomic_file.replace(Path(sys.argv[1]), b"x" * 5000)
"""


def test_a_write_that_takes_only_a_part_is_continued_or_fails(directory: Path) -> None:
    ran = run_python("-c", _CUT, directory / "file", check=False)

    assert "File too large" in ran.stderr
    assert (directory / "file").read_bytes() == b"old"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_owner_and_group_are_kept(directory: Path) -> None:
    os.chown(directory / "file", 12345, 23456)

    replace(directory / "file", b"new")

    found = (directory / "file").stat()
    assert (found.st_uid, found.st_gid) == (12345, 23456)


_AS_ANOTHER = """
import os, sys
from pathlib import Path
from sampletool.kit.safety import atomic_file
os.chdir(sys.argv[1])
os.setgroups([])
os.setegid(12345)
os.seteuid(12345)
atomic_file.replace(Path("file"), b"new")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of a group that the caller is not in")
def test_a_group_that_cannot_be_kept_is_named_and_the_file_untouched(directory: Path) -> None:
    os.chown(directory, 12345, 12345)
    os.chown(directory / "file", 12345, 0)

    ran = run_python("-c", _AS_ANOTHER, directory, check=False)

    assert "the new file cannot be given its owner and group (12345:0)" in ran.stderr
    assert os.listdir(directory) == ["file"]
    assert (directory / "file").read_bytes() == b"old"


@pytest.mark.parametrize("name", ["x" * 255, "\N{SNOWMAN}" * 85], ids=["ascii", "three bytes each"])
def test_a_name_may_be_as_long_as_the_system_allows(directory: Path, name: str) -> None:
    assert failure_of(lambda: create(directory / name, b"created")) is None
    assert failure_of(lambda: replace(directory / name, b"replaced")) is None

    assert (directory / name).read_bytes() == b"replaced"
    assert sorted(os.listdir(directory)) == sorted(["file", name])


@pytest.mark.leaves_litter
@pytest.mark.parametrize("name", ["file", "x" * 255])
def test_the_litter_of_a_file_is_swept_and_nothing_that_is_beside_it(directory: Path, name: str) -> None:
    script = f"{_REPLACE.replace('sys.argv[1]', repr(str(directory / name)))}"
    with run_stepped(directory, script) as stepped:
        stepped.run_until("os.rename")
        stepped.kill()
    (litter,) = (each for each in os.listdir(directory) if each.endswith(".tmp"))
    begin = litter.rpartition(".")[0].rpartition(".")[0]
    beside = [f"{begin}.backup.tmp", f"{begin}.12-abc.tmp", f"{litter}x", f"a{litter}", ".other.1-01234567.tmp"]
    for each in beside:
        (directory / each).touch()

    sweep(directory / name)

    assert sorted(os.listdir(directory)) == sorted({*beside, "file"})


def test_a_link_is_not_followed_where_that_is_asked_for(directory: Path) -> None:
    (directory / "link").symlink_to(directory / "file")

    assert read_regular(directory / "link", 10) == b"old"
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        read_regular(directory / "link", 10, follow=False)


def test_create_makes_a_file_for_all_and_replaces_none(directory: Path) -> None:
    file = directory / "new"
    os.umask(umask := os.umask(0))

    create(file, b"first")

    with pytest.raises(FileExistsError):
        create(file, b"second")
    assert file.read_bytes() == b"first"
    assert file.stat().st_mode & 0o777 == 0o666 & ~umask
    assert sorted(os.listdir(directory)) == ["file", "new"]


def test_an_error_names_the_file_and_not_the_temporary_one(directory: Path) -> None:
    file = directory / "nowhere" / "file"

    for write in (replace, create):
        with pytest.raises(FileNotFoundError) as caught:
            write(file, b"new")
        assert caught.value.filename == str(file)


def test_what_is_no_regular_file_is_not_replaced(directory: Path) -> None:
    """Naive: root writes to /dev/null, and there is no /dev/null any more."""
    os.mkfifo(directory / "pipe")

    with pytest.raises(UnsafePath):
        replace(directory / "pipe", b"new")

    assert (directory / "pipe").is_fifo()
    assert sorted(os.listdir(directory)) == ["file", "pipe"]
