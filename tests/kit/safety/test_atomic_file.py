"""Readers see the old content or the new one, also after kill -9 and after a power failure."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sampletool.kit.safety import atomic_file
from sampletool.kit.safety.atomic_file import (
    create,
    flush_directory,
    opened,
    read_regular,
    replace,
    sweep,
    write_all,
)
from sampletool.kit.safety.errors import UnsafePath
from sampletool.kit.stepping.power_cut import Files, crash_states, states_after
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.failing import failure_of, outcome_of
from sampletool.kit.testing.forked import fork_server, run_python
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import COMMAND, Tool, ended

NOW = 1_800_000_000.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
needs_attributes = pytest.mark.skipif(
    sys.platform != "linux",
    reason="Python has extended attributes on Linux only",
)

_REPLACE = """
import sys
from pathlib import Path
from sampletool.kit.safety import atomic_file
atomic_file.replace(Path(sys.argv[1]), b"new")
"""

_CREATE = """
import sys
from pathlib import Path
from sampletool.kit.safety import atomic_file
atomic_file.create(Path(sys.argv[1]), b"new")
"""

_WRITE_IN_PLACE = """
import os, sys
descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
os.write(descriptor, b"new")
"""

_RENAME_WITHOUT_FLUSH = """
import os, sys
descriptor = os.open(sys.argv[1] + ".tmp", os.O_WRONLY | os.O_CREAT)
os.write(descriptor, b"new")
os.rename(sys.argv[1] + ".tmp", sys.argv[1])
"""

_DIRECTORY_NOT_FLUSHED = _REPLACE.replace(
    "atomic_file.replace", "atomic_file.flush_directory = repr\natomic_file.replace"
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with nothing but the file `file`, whose content is `old`."""
    directory = tmp_path / "on stage"
    directory.mkdir()
    (directory / "file").write_bytes(b"old")
    return directory


def run_stepped(directory: Path, code: str, name: str = "file") -> SteppedProcess:
    """Start the code, which stops before each system call that touches the directory."""
    script = directory.parent / "script.py"
    script.write_text(code)
    command = [str(script), str(directory / name)]
    return SteppedProcess(command, watch=directory, fork_server=fork_server())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# What readers see


def test_a_reader_never_sees_half_a_file(directory: Path) -> None:
    contents = [b"a" * 100_000, b"b" * 70_000]
    path = directory / "file"
    replace(path, contents[1])
    seen = set()
    is_done = threading.Event()

    def read() -> None:
        while not is_done.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(scale(30, 2000)):
        replace(path, contents[turn % 2])
    is_done.set()
    reader.join()

    assert seen <= set(contents)


def test_blocks_are_written_one_after_the_other(directory: Path) -> None:
    failures = [
        failure_of(lambda: replace(directory / "file", iter([b"one ", b"", b"two"]))),
        failure_of(lambda: create(directory / "created", [b"three ", b"four"])),
    ]

    assert failures == [None, None]
    assert (directory / "file").read_bytes() == b"one two"
    assert (directory / "created").read_bytes() == b"three four"


def test_two_writers_at_once_have_two_temporary_files(directory: Path) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        stepped.run_until("os.rename")
        failure = failure_of(lambda: replace(directory / "file", b"from another"))
        ended = stepped.finish()

    assert failure is None
    assert (ended.status, ended.stderr) == (0, b"")
    assert (directory / "file").read_bytes() == b"new"


def test_a_process_that_writes_two_files_at_once_has_two_temporary_files(directory: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"outer "
        replace(directory / "file", b"inner")
        yield b"again"

    replace(directory / "file", blocks())

    assert (directory / "file").read_bytes() == b"outer again"


# Kills, power failures and failing steps


def test_kill_9_before_any_step_leaves_the_old_or_the_new_file(directory: Path) -> None:
    steps = 0
    outcomes = set()
    while True:
        (directory / "file").write_bytes(b"old")
        with run_stepped(directory, _REPLACE) as stepped:
            for _ in range(steps):
                stepped.step()
            if stepped.next_event is None:
                break
            stepped.kill()
        outcomes.add((directory / "file").read_bytes())
        assert failure_of(lambda: sweep(directory / "file")) is None
        assert os.listdir(directory) == ["file"]
        steps += 1

    assert steps >= 6
    assert outcomes == {b"old", b"new"}


@pytest.mark.parametrize(
    ("code", "on_the_way", "in_the_end"),
    [
        (_WRITE_IN_PLACE, {b"old", b"", b"n", b"new"}, {b"old", b"", b"n", b"new"}),
        (_RENAME_WITHOUT_FLUSH, {b"old", b"", b"n", b"new"}, {b"old", b"", b"n", b"new"}),
        (_DIRECTORY_NOT_FLUSHED, {b"old", b"new"}, {b"old", b"new"}),
        (_REPLACE, {b"old", b"new"}, {b"new"}),
    ],
    ids=[
        "naive: written in place",
        "naive: renamed, never flushed",
        "naive: directory not flushed",
        "ours",
    ],
)
def test_a_power_cut_at_any_moment(
    directory: Path,
    code: str,
    on_the_way: set[bytes],
    in_the_end: set[bytes],
) -> None:
    def contents(states: Iterator[Files]) -> set[bytes]:
        return {state.get("file", b"missing") for state in states}

    with run_stepped(directory, code) as stepped:
        while stepped.next_event is not None:
            stepped.step()

    before = {"file": b"old"}
    after_any_crash = contents(crash_states(before, stepped.past_events, str(directory)))
    after_success = contents(states_after(before, stepped.past_events, str(directory)))
    assert after_any_crash == on_the_way
    assert after_success == in_the_end


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("step", ["open", "os.write", "os.fsync", "os.rename"])
def test_a_failing_step_leaves_the_old_file_and_no_litter(
    directory: Path,
    step: str,
    number: int,
) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        stepped.run_until(step)
        stepped.fail(number)
        ended = stepped.finish()

    assert ended.status == 1
    # Lines before the last one also show the error that was the cause.
    expected = f"[Errno {number}] {os.strerror(number)}: '{directory / 'file'}'"
    assert ended.stderr.decode().splitlines()[-1].endswith(expected)
    assert os.listdir(directory) == ["file"]
    assert (directory / "file").read_bytes() == b"old"


def test_a_failing_link_leaves_no_new_file_and_no_litter(directory: Path) -> None:
    with run_stepped(directory, _CREATE, name="created") as stepped:
        stepped.run_until("os.link")
        stepped.fail(errno.EIO)
        ended = stepped.finish()

    assert ended.status == 1
    assert os.listdir(directory) == ["file"]


@pytest.mark.parametrize(
    "error",
    [OSError("no number"), ValueError("bad row"), KeyboardInterrupt()],
)
def test_blocks_that_fail_leave_the_old_file_and_no_litter_and_keep_their_error(
    directory: Path,
    error: BaseException,
) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"first"
        raise error

    with pytest.raises(type(error)) as caught:
        replace(directory / "file", blocks())

    assert caught.value is error
    assert os.listdir(directory) == ["file"]
    assert (directory / "file").read_bytes() == b"old"


def test_a_failure_is_reported_also_if_the_temporary_file_is_gone(directory: Path) -> None:
    def blocks() -> Iterator[bytes]:
        (temporary,) = directory.glob(".file.*.tmp")
        temporary.unlink()
        yield b""
        raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        replace(directory / "file", blocks())


def test_what_comes_after_the_rename_fails_and_the_change_is_said_to_be_there(
    directory: Path,
) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        stepped.run_until("os.rename")
        stepped.run_until("os.fsync")
        stepped.fail(errno.ENOSPC)
        ended = stepped.finish()

    assert b"NotFlushed" in ended.stderr
    assert f"{directory / 'file'}: no space left on device".encode() in ended.stderr
    assert os.listdir(directory) == ["file"]
    assert (directory / "file").read_bytes() == b"new"


_WRITE_MORE_THAN_ALLOWED = """
import resource, sys
from pathlib import Path
from sampletool.kit.safety import atomic_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
atomic_file.replace(Path(sys.argv[1]), b"x" * 5000)
"""


def test_a_write_that_takes_only_a_part_is_continued_or_fails(directory: Path) -> None:
    ran = run_python("-c", _WRITE_MORE_THAN_ALLOWED, directory / "file", check=False)

    assert "File too large" in ran.stderr
    assert (directory / "file").read_bytes() == b"old"


def test_a_pipe_that_takes_only_a_part_at_a_time_gets_everything(directory: Path) -> None:
    content = bytes(range(256)) * 1024
    received = bytearray()
    read_end, write_end = os.pipe()

    def read() -> None:
        while block := os.read(read_end, 1000):
            received.extend(block)

    reader = threading.Thread(target=read)
    reader.start()
    write_all(write_end, content)
    os.close(write_end)
    reader.join()
    os.close(read_end)

    assert bytes(received) == content


@pytest.mark.parametrize("write", [replace, create])
def test_an_error_names_the_target_and_not_the_temporary_file(
    directory: Path,
    write: Callable[[Path, bytes], None],
) -> None:
    target = directory / "nowhere" / "file"

    with pytest.raises(FileNotFoundError) as caught:
        write(target, b"new")

    assert caught.value.filename == str(target)
    assert caught.value.filename2 is None
    assert caught.value.strerror == os.strerror(errno.ENOENT)


def test_a_target_that_the_system_uses_is_said_to_be_in_use(directory: Path) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        stepped.run_until("os.rename")
        stepped.fail(errno.EBUSY)
        ended = stepped.finish()

    last_line = ended.stderr.decode().splitlines()[-1]
    assert "the system uses it, for example as a mount point" in last_line
    assert str(directory / "file") in last_line
    assert os.listdir(directory) == ["file"]


_SET_UNDER_A_MOUNT = 'mount --bind tool.toml tool.toml && exec "$@"'


def test_a_settings_file_that_is_a_mount_point_is_said_to_be_irreplaceable(
    tool: Tool,
    workspace: Path,
) -> None:
    """Container runtimes can mount a single file."""
    unshare = ["unshare", "--user", "--map-root-user", "--mount"]
    can_mount = [*unshare, "sh", "-c", "mount --bind tool.toml tool.toml"]
    if subprocess.run(can_mount, cwd=workspace, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let `unshare --user --mount` mount a file")
    before = (workspace / "tool.toml").read_bytes()

    # A fresh interpreter, which unshare starts: a forked one would not be in the namespace.
    program = [*unshare, "sh", "-c", _SET_UNDER_A_MOUNT, "sh", *COMMAND]
    process = tool.start_fresh("config", "set", "a", "1", program=program)
    ran = ended(process)

    assert (ran.status, ran.code) == (1, "IO_ERROR")
    assert "for example as a mount point" in ran.error["message"]
    assert "mount its parent directory" in ran.error["suggestion"]
    assert (workspace / "tool.toml").read_bytes() == before
    assert list(workspace.glob(".tool.toml.*.tmp")) == []


# Mode, owner and attributes


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640, 0o644, 0o666, 0o755, 0o4750, 0o2640, 0o1600])
def test_the_mode_is_kept(directory: Path, mode: int) -> None:
    (directory / "file").chmod(mode)

    failure = failure_of(lambda: replace(directory / "file", b"new", new_mode=0o604))

    assert failure is None
    assert oct(mode_of(directory / "file")) == oct(mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_mode_is_kept_whatever_the_umask(directory: Path, umask: int) -> None:
    (directory / "file").chmod(0o664)
    before = os.umask(umask)
    try:
        replace(directory / "file", b"new")
    finally:
        os.umask(before)

    assert oct(mode_of(directory / "file")) == oct(0o664)


@needs_attributes
def test_extended_attributes_are_kept(directory: Path) -> None:
    path = directory / "file"
    os.setxattr(path, "user.origin", b"here")
    os.setxattr(path, "user.empty", b"")

    replace(path, b"new")

    assert os.getxattr(path, "user.origin") == b"here"
    assert os.getxattr(path, "user.empty") == b""


@needs_attributes
def test_an_attribute_that_cannot_be_copied_is_left_out_and_the_next_one_is_copied(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the system can set some attributes. Here, there is an attribute that is gone again."""
    path = directory / "file"
    os.setxattr(path, "user.origin", b"here")
    monkeypatch.setattr(os, "listxattr", lambda _path: ["user.gone", "user.origin"])

    failure = failure_of(lambda: replace(path, b"new"))

    monkeypatch.undo()
    assert failure is None
    assert path.read_bytes() == b"new"
    assert [name for name in os.listxattr(path) if name.startswith("user.")] == ["user.origin"]


@needs_attributes
def test_a_file_system_without_attributes_is_no_failure(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_path: Path) -> list[str]:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "listxattr", refuse)

    failure = failure_of(lambda: replace(directory / "file", b"new"))

    assert failure is None
    assert (directory / "file").read_bytes() == b"new"


def test_a_system_whose_python_knows_no_attributes_is_no_failure(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as macOS."""
    (directory / "file").chmod(0o640)
    monkeypatch.delattr(os, "listxattr", raising=False)

    failure = failure_of(lambda: replace(directory / "file", b"new"))

    assert failure is None
    assert oct(mode_of(directory / "file")) == oct(0o640)


@needs_root
@pytest.mark.parametrize(("uid", "gid"), [(12345, 23456), (12345, 0), (0, 23456)])
def test_owner_and_group_are_kept(directory: Path, uid: int, gid: int) -> None:
    os.chown(directory / "file", uid, gid)

    failure = failure_of(lambda: replace(directory / "file", b"new"))

    assert failure is None
    status = (directory / "file").stat()
    assert (status.st_uid, status.st_gid) == (uid, gid)


@needs_root
def test_the_set_user_id_bit_is_kept_with_the_owner(directory: Path) -> None:
    """Naive: the owner is changed after the mode, and the kernel clears the bit."""
    os.chown(directory / "file", 12345, 23456)
    (directory / "file").chmod(0o4750)

    replace(directory / "file", b"new")

    assert oct(mode_of(directory / "file")) == oct(0o4750)


_REPLACE_AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from sampletool.kit.safety import atomic_file
os.chdir(sys.argv[1])
os.setgroups([])
os.setegid(12345)
os.seteuid(12345)
atomic_file.replace(Path("file"), b"new")
"""


@needs_root
def test_a_group_that_cannot_be_kept_is_named_and_the_file_untouched(directory: Path) -> None:
    os.chown(directory, 12345, 12345)
    os.chown(directory / "file", 12345, 0)

    ran = run_python("-c", _REPLACE_AS_ANOTHER_USER, directory, check=False)

    assert "PermissionError" in ran.stderr
    assert "the new file cannot be given its owner and group (12345:0): 'file'" in ran.stderr
    assert os.listdir(directory) == ["file"]
    assert (directory / "file").read_bytes() == b"old"


def test_a_file_system_that_refuses_each_change_of_the_owner_is_no_failure(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as FAT. The owner of the new file is already right."""

    def refuse(_descriptor: int, _uid: int, _gid: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchown", refuse)

    failure = failure_of(lambda: replace(directory / "file", b"new"))

    assert failure is None
    assert (directory / "file").read_bytes() == b"new"


def test_mode_and_owner_are_on_the_disk_before_the_name_is(directory: Path) -> None:
    with run_stepped(directory, _REPLACE) as stepped:
        while stepped.next_event is not None:
            stepped.step()

    names = [event.name for event in stepped.past_events if event.path.endswith((".tmp", "/file"))]
    assert names.index("os.chmod") < names.index("os.fsync") < names.index("os.rename")


def test_a_new_file_is_private(directory: Path) -> None:
    failure = failure_of(lambda: replace(directory / "another", b"secret"))

    assert failure is None
    assert oct(mode_of(directory / "another")) == oct(0o600)


def test_the_temporary_file_is_private_until_it_has_its_mode(directory: Path) -> None:
    (directory / "file").chmod(0o666)
    with run_stepped(directory, _REPLACE) as stepped:
        stepped.run_until("os.write")
        (temporary,) = directory.glob(".file.*.tmp")
        mode = mode_of(temporary)
        ended = stepped.finish()

    assert oct(mode) == oct(0o600)
    assert ended.status == 0


# Create


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_create_makes_a_file_for_all_that_the_umask_allows(directory: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        create(directory / "new", b"content")
    finally:
        os.umask(before)

    assert (directory / "new").read_bytes() == b"content"
    assert oct(mode_of(directory / "new")) == oct(0o666 & ~umask)
    assert (directory / "new").stat().st_nlink == 1
    assert sorted(os.listdir(directory)) == ["file", "new"]


def test_create_replaces_no_file(directory: Path) -> None:
    with pytest.raises(FileExistsError) as caught:
        create(directory / "file", b"new")

    assert caught.value.filename == str(directory / "file")
    assert (directory / "file").read_bytes() == b"old"
    assert os.listdir(directory) == ["file"]


def test_create_replaces_no_link(directory: Path) -> None:
    (directory / "link").symlink_to("nowhere")

    with pytest.raises(FileExistsError):
        create(directory / "link", b"new")

    assert sorted(os.listdir(directory)) == ["file", "link"]


def test_create_replaces_no_file_that_appears_at_the_last_moment(directory: Path) -> None:
    with run_stepped(directory, _CREATE, name="created") as stepped:
        stepped.run_until("os.link")
        (directory / "created").write_bytes(b"from another")
        ended = stepped.finish()

    assert b"FileExistsError" in ended.stderr
    assert (directory / "created").read_bytes() == b"from another"


# Names


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_what_is_no_regular_file_is_not_replaced(directory: Path, kind: str) -> None:
    """Naive: root writes to /dev/null, and there is no /dev/null any more."""
    path = directory / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()

    with pytest.raises(UnsafePath, match="not a regular file"):
        replace(path, b"new")

    assert not path.is_file()
    assert sorted(os.listdir(directory)) == ["file", "odd"]


@pytest.mark.parametrize("name", ["x" * 255, "\N{SNOWMAN}" * 85], ids=["ascii", "three bytes each"])
def test_a_name_may_be_as_long_as_the_system_allows(directory: Path, name: str) -> None:
    assert failure_of(lambda: create(directory / name, b"created")) is None
    assert failure_of(lambda: replace(directory / name, b"replaced")) is None

    assert (directory / name).read_bytes() == b"replaced"
    assert sorted(os.listdir(directory)) == sorted(["file", name])


@pytest.mark.parametrize(
    ("name", "begin"),
    [("x" * 200, f".{'x' * 200}."), ("x" * 201, ".long-name-")],
    ids=["200 bytes", "201 bytes"],
)
def test_a_temporary_name_has_the_name_of_the_file_if_it_fits(
    directory: Path,
    name: str,
    begin: str,
) -> None:
    names = []

    def blocks() -> Iterator[bytes]:
        names.extend(os.listdir(directory))
        yield b"new"

    create(directory / name, blocks())

    (temporary,) = [each for each in names if each != "file"]
    assert temporary.startswith(begin)
    assert f".{os.getpid()}-" in temporary
    assert temporary.endswith(".tmp")


# Sweep


@pytest.mark.leaves_litter
@pytest.mark.parametrize("name", ["file", "x" * 255])
def test_the_litter_of_a_file_is_swept_and_nothing_that_is_beside_it(
    directory: Path,
    name: str,
) -> None:
    with run_stepped(directory, _REPLACE, name=name) as stepped:
        stepped.run_until("os.rename")
        stepped.kill()
    (litter,) = (each for each in os.listdir(directory) if each.endswith(".tmp"))
    begin = litter.rpartition(".")[0].rpartition(".")[0]
    beside = [
        f"{begin}.backup.tmp",
        f"{begin}.12-abc.tmp",
        f"{litter}x",
        f"a{litter}",
        ".other.1-01234567.tmp",
    ]
    for each in beside:
        (directory / each).touch()

    sweep(directory / name)

    assert sorted(os.listdir(directory)) == sorted({*beside, "file"})


@pytest.mark.leaves_litter
def test_a_name_with_characters_of_a_pattern_sweeps_only_its_own_litter(directory: Path) -> None:
    (directory / ".a.b.1-01234567.tmp").touch()
    (directory / ".axb.1-01234567.tmp").touch()

    sweep(directory / "a.b")

    assert sorted(os.listdir(directory)) == [".axb.1-01234567.tmp", "file"]


@pytest.mark.leaves_litter
@pytest.mark.parametrize(
    ("age_seconds", "is_removed"),
    [(59, False), (60, False), (61, True)],
)
def test_litter_is_swept_when_it_is_older_than_was_said(
    directory: Path,
    age_seconds: int,
    is_removed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    litter = directory / ".file.12-0123abcd.tmp"
    litter.touch()
    os.utime(litter, (NOW - age_seconds, NOW - age_seconds))
    monkeypatch.setattr(time, "time", lambda: NOW)

    sweep(directory / "file", 60)

    assert litter.exists() != is_removed


def test_litter_of_any_age_is_swept_where_no_age_is_said(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock that was set back gives the litter a time in the future."""
    litter = directory / ".file.12-0123abcd.tmp"
    litter.touch()
    os.utime(litter, (NOW + 1000, NOW + 1000))
    monkeypatch.setattr(time, "time", lambda: NOW)

    failure = failure_of(lambda: sweep(directory / "file"))

    assert failure is None
    assert os.listdir(directory) == ["file"]


def test_litter_that_cannot_be_removed_is_passed_over(directory: Path) -> None:
    """A directory with such a name cannot be unlinked, not even by root."""
    (directory / ".file.11-0123abcd.tmp").mkdir()
    (directory / ".file.12-0123abcd.tmp").touch()
    (directory / ".file.13-0123abcd.tmp").mkdir()
    (directory / ".file.14-0123abcd.tmp").touch()

    failure = failure_of(lambda: sweep(directory / "file"))

    assert failure is None
    left = [".file.11-0123abcd.tmp", ".file.13-0123abcd.tmp", "file"]
    assert sorted(os.listdir(directory)) == left
    (directory / left[0]).rmdir()
    (directory / left[1]).rmdir()


# Read


@pytest.mark.parametrize("kind", ["fifo", "directory", "device"])
def test_only_regular_files_are_read(directory: Path, kind: str) -> None:
    path = directory / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path = Path("/dev/zero")

    with pytest.raises(UnsafePath, match="not a regular file"):
        read_regular(path, 1000)


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_file_is_read_up_to_the_limit(directory: Path, size: int) -> None:
    (directory / "file").write_bytes(b"x" * size)

    content = outcome_of(lambda: read_regular(directory / "file", 1000))

    assert content == b"x" * size


def test_a_file_that_is_one_byte_too_large_is_refused(directory: Path) -> None:
    (directory / "file").write_bytes(b"x" * 1001)

    with pytest.raises(UnsafePath, match="larger than 1000 bytes") as caught:
        read_regular(directory / "file", 1000)

    assert caught.value.path == str(directory / "file")


def test_a_huge_file_is_refused_without_reading_it(directory: Path) -> None:
    with (directory / "huge").open("wb") as file:
        file.truncate(5 * 2**30)

    with pytest.raises(UnsafePath, match="larger"):
        read_regular(directory / "huge", 1000)


def test_a_link_is_followed_unless_that_is_refused(directory: Path) -> None:
    (directory / "link").symlink_to(directory / "file")

    through_link = outcome_of(lambda: read_regular(directory / "link", 10))
    without_link = outcome_of(lambda: read_regular(directory / "file", 10, follow=False))
    refused = failure_of(lambda: read_regular(directory / "link", 10, follow=False))

    assert through_link == without_link == b"old"
    assert isinstance(refused, OSError)
    assert refused.errno == errno.ELOOP


# Flush


def test_only_a_directory_is_flushed_as_a_directory(directory: Path) -> None:
    of_directory = failure_of(lambda: flush_directory(directory))
    of_file = failure_of(lambda: flush_directory(directory / "file"))

    assert of_directory is None
    assert isinstance(of_file, NotADirectoryError)


@pytest.mark.parametrize("is_supported", [True, False])
def test_a_disk_is_flushed_as_far_as_it_can_be_and_once(
    directory: Path,
    is_supported: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On macOS, fcntl() flushes the disk itself if the file system supports that."""
    flushes = []

    def full_flush(_descriptor: int, command: int) -> None:
        flushes.append(f"fcntl {command}")
        if not is_supported:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    fake_fcntl = SimpleNamespace(F_FULLFSYNC=51, fcntl=full_flush)
    monkeypatch.setattr(atomic_file, "fcntl", fake_fcntl)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: flushes.append("fsync"))

    failure = failure_of(lambda: flush_directory(directory))

    assert failure is None
    assert flushes == (["fcntl 51"] if is_supported else ["fcntl 51", "fsync"])


# Descriptors


def test_a_descriptor_is_closed_also_when_the_block_fails(directory: Path) -> None:
    descriptors = []

    def fail() -> None:
        with opened(directory / "file", os.O_RDONLY) as descriptor:
            descriptors.append(descriptor)
            assert os.read(descriptor, 10) == b"old"
            raise ValueError

    assert isinstance(failure_of(fail), ValueError)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(descriptors[0])


def test_a_file_that_is_created_by_opening_it_is_private(directory: Path) -> None:
    with opened(directory / "new", os.O_WRONLY | os.O_CREAT):
        pass

    assert oct(mode_of(directory / "new")) == oct(0o600)


def test_no_descriptor_is_inherited_by_a_program_that_is_started_meanwhile(directory: Path) -> None:
    inheritable = []

    def blocks() -> Iterator[bytes]:
        for name in os.listdir("/dev/fd"):
            descriptor = int(name)
            try:
                path = os.readlink(f"/proc/self/fd/{descriptor}")
            except OSError:
                continue
            if path.startswith(str(directory)):
                inheritable.append(os.get_inheritable(descriptor))
        yield b"new"

    if not Path("/proc/self/fd").exists():
        pytest.skip("only Linux says which file a descriptor belongs to")

    replace(directory / "file", blocks())

    assert inheritable == [False]


def test_the_flags_of_a_temporary_file_refuse_what_is_already_there(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever guesses the name of the temporary file can plant a link there."""
    victim = directory / "victim"
    victim.write_bytes(b"untouched")
    planted = directory / "planted"
    planted.symlink_to(victim)
    monkeypatch.setattr(atomic_file, "_temporary_path", lambda _target: planted)

    with pytest.raises(FileExistsError):
        replace(directory / "file", b"new")

    assert victim.read_bytes() == b"untouched"
    assert planted.is_symlink()
    assert (directory / "file").read_bytes() == b"old"
