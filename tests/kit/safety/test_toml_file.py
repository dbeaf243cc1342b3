"""No process's change of a TOML file is lost, and a file that cannot be changed safely stays."""

import errno
import os
import signal
import stat
import tomllib
from functools import partial
from pathlib import Path

import pytest

from sampletool.kit.safety.atomic_file import read_regular
from sampletool.kit.safety.errors import DeadlineExceeded, InvalidToml, LockTimeout, UnsafePath
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.signals import Signals
from sampletool.kit.safety.toml_file import (
    TomlEdit,
    editing_toml,
    lock_beside,
    parse,
    read_toml,
    refuse_unwritable,
    resolve,
)
from sampletool.kit.safety.toml_limits import MAX_TOML_BYTES, TOO_LARGE
from sampletool.kit.stepping.tracer import Ended, Event, SteppedProcess
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Ran, Tool

NAIVE_WRITER = """
import os, sys, tomllib

path, key, value = sys.argv[1:]
with open(path, "rb") as file:
    settings = tomllib.load(file)["settings"]
settings[key] = int(value)
with open(path + key, "w") as file:
    file.write("[settings]\\n")
    for name, number in settings.items():
        file.write(f"{name} = {number}\\n")
os.rename(path + key, path)
"""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "tool.toml"
    path.write_text("[settings]\nlevel = 1\n")
    return path


def keys(file: Path) -> set[str]:
    return set(tomllib.loads(file.read_text())["settings"])


def litter_in(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.endswith(".tmp")]


def as_ran(ended: Ended) -> Ran:
    return Ran(ended.status, ended.stdout, ended.stderr)


def takes_the_lock(event: Event) -> bool:
    return event.name == "fcntl.flock" and event.path.endswith("tool.toml.lock")


def test_two_naive_writers_that_meet_at_the_rename_lose_a_change(file: Path) -> None:
    script = file.parent.parent / "naive.py"
    script.write_text(NAIVE_WRITER)

    def start_writer(key: str) -> SteppedProcess:
        call = [str(script), str(file), key, "1"]
        return SteppedProcess(call, watch=file.parent, fork_server=fork_server())

    for _ in range(scale(5, 20)):
        file.write_text("[settings]\nlevel = 1\n")

        with start_writer("a") as a, start_writer("b") as b:
            a.run_until("os.rename")
            b.run_until("os.rename")
            a.finish()
            b.finish()

        assert keys(file) == {"level", "b"}


def test_two_commands_that_meet_at_the_rename_keep_both_changes(tool: Tool, file: Path) -> None:
    for _ in range(scale(5, 20)):
        file.write_text("[settings]\nlevel = 1\n")

        with (
            tool.stepped("config", "set", "a", "1", watch=file.parent) as a,
            tool.stepped("config", "set", "b", "1", watch=file.parent) as b,
        ):
            a.run_until("os.rename")
            # The first event tries the lock, and the second one waits for it.
            b.run_until(takes_the_lock, times=2)
            keys_while_a_is_stopped = keys(file)
            a.finish()
            exit_code_of_b = b.finish().status

        assert keys_while_a_is_stopped == {"level"}
        assert exit_code_of_b == 0
        assert keys(file) == {"level", "a", "b"}


def test_kill_9_at_any_moment_leaves_the_old_or_the_new_file(tool: Tool, file: Path) -> None:
    old_text = file.read_text()
    outcomes = set()
    killed_at = 0

    while True:
        file.write_text(old_text)
        with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
            for _ in range(killed_at):
                if stepped.next_event is not None:
                    stepped.step()
            if stepped.next_event is None:
                break
            stepped.kill()
        outcomes.add(file.read_text())
        killed_at += scale(2, 1)

        if killed_at % scale(6, 1) == 0:
            next_command = tool("config", "set", "b", "2")
            assert next_command.status == 0, next_command
            assert "b" in keys(file)
            if "recovered_from" in next_command.meta:
                assert litter_in(file.parent) == []

    assert outcomes == {old_text, old_text + "a = 1\n"}
    assert killed_at > 15


def test_a_link_survives_and_shares_the_lock_with_its_file(tool: Tool, file: Path) -> None:
    elsewhere = file.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tool.toml").symlink_to(file)
    calls: list[list[str | Path]] = []
    for number in range(4):
        calls.append(["-C", elsewhere, "config", "set", f"x{number}", "1"])
        calls.append(["-C", file.parent, "config", "set", f"y{number}", "1"])

    results = tool.together(calls)

    assert [ran.status for ran in results] == [0] * 8
    assert (elsewhere / "tool.toml").is_symlink()
    assert len(keys(file)) == 9


def test_a_change_goes_through_a_dangling_link(tool: Tool, home: Path) -> None:
    config = home / "xdg_config_home" / "sampletool"
    config.mkdir()
    (config / "config.toml").symlink_to(config / "real.toml")

    ran = tool("config", "set", "a", "1")

    assert ran.status == 0
    assert (config / "config.toml").is_symlink()
    assert (config / "real.toml").read_text() == "a = 1\n"


def test_links_that_lead_to_each_other_are_an_error_and_not_a_crash(tmp_path: Path) -> None:
    one = tmp_path / "one.toml"
    other = tmp_path / "other.toml"
    one.symlink_to(other)
    other.symlink_to(one)

    error = failure_of(lambda: read_toml(resolve(one)))

    assert isinstance(error, OSError)
    assert error.errno == errno.ELOOP


def test_a_link_that_changes_during_the_wait_is_followed_again(tool: Tool, tmp_path: Path) -> None:
    link = tmp_path / "work" / "tool.toml"
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool.toml").write_text("[settings]\n")
    link.symlink_to(tmp_path / "old" / "tool.toml")

    with tool.stepped("config", "set", "a", "1", watch=tmp_path) as stepped:
        stepped.run_until(takes_the_lock)
        link.unlink()
        link.symlink_to(tmp_path / "new" / "tool.toml")
        ended = stepped.finish()

    assert ended.status == 0
    assert (tmp_path / "old" / "tool.toml").read_text() == "[settings]\n"
    assert (tmp_path / "new" / "tool.toml").read_text() == "[settings]\na = 1\n"


def test_an_unchanged_value_writes_nothing(tool: Tool, file: Path) -> None:
    before = file.stat()

    ran = tool("config", "set", "level", "1")

    after = file.stat()
    assert ran.data["effect"] == "unchanged"
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_mode_the_byte_order_mark_and_the_line_ends_are_kept(tool: Tool, file: Path) -> None:
    file.write_bytes(BYTE_ORDER_MARK + b"[settings]\r\nlevel = 1\r\n")
    file.chmod(0o640)

    tool("config", "set", "a", "1")

    assert file.read_bytes() == BYTE_ORDER_MARK + b"[settings]\r\nlevel = 1\r\na = 1\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_hard_linked_file_is_changed_with_a_warning(tool: Tool, file: Path) -> None:
    os.link(file, file.parent / "other")

    ran = tool("config", "set", "a", "1")

    assert [warning["code"] for warning in ran.response["warnings"]] == ["HARD_LINK"]


@pytest.mark.parametrize(
    "content",
    [
        b"[settings\n",
        b"\xff\xfe",
        b"a = " + b"[" * 5000,
        b"a = " + b"[" * 200 + b"]" * 200,
        b"[settings]\n" + b".".join([b"a"] * 900) + b" = 1\n",
    ],
    ids=["not TOML", "not UTF-8", "recursion", "too deep", "key too long"],
)
def test_a_file_that_cannot_be_parsed_stays_as_it_is(
    tool: Tool,
    file: Path,
    content: bytes,
) -> None:
    file.write_bytes(content)
    calls = [["set", "a", "1"], ["get", "a"], ["unset", "a"], ["list"], ["explain", "jobs"]]

    codes = [tool("config", *call).code for call in calls]

    assert codes == ["INVALID_TOML"] * len(calls)
    assert file.read_bytes() == content


@pytest.mark.parametrize("kind", ["directory", "fifo", "huge"])
def test_anything_but_a_small_regular_file_is_refused(tool: Tool, file: Path, kind: str) -> None:
    file.unlink()
    if kind == "directory":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        with file.open("wb") as huge:
            huge.truncate(2**33)

    codes = [tool("config", *call).code for call in (["set", "a", "1"], ["get", "a"])]

    assert codes == ["UNSAFE_PATH", "UNSAFE_PATH"]


@pytest.mark.parametrize("text", ["[[settings]]\n", "settings = 3\n"])
def test_settings_that_are_no_table_are_reported(tool: Tool, file: Path, text: str) -> None:
    file.write_text(text)
    calls = [["set", "a", "1"], ["get", "a"], ["unset", "a"], ["list"]]

    results = [tool("config", *call) for call in calls]

    for ran in results:
        assert ran.code == "INVALID_TOML"
        assert "settings is not a table" in ran.error["message"]
    assert file.read_text() == text


def test_a_program_can_edit_a_file_with_the_library_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"

    with editing_toml(path) as file:
        file.text = '[colour]\nsky = "blue"\n'
        file.write()
        version = file.version

    after = read_toml(path)
    assert after.text == '[colour]\nsky = "blue"\n'
    assert after.document == {"colour": {"sky": "blue"}}
    assert after.version == version


def test_a_file_stays_locked_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"

    def edit_at_once() -> None:
        with editing_toml(path, 0):
            pass

    with editing_toml(path) as file:
        file.text = "a = 1\n"
        file.write()
        failure_inside = failure_of(edit_at_once)
    failure_afterwards = failure_of(edit_at_once)

    assert isinstance(failure_inside, LockTimeout)
    assert failure_afterwards is None


def test_the_lock_can_be_in_another_place(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "link.toml").symlink_to(tmp_path / "settings.toml")
    resolved_paths = []

    def lock_path_of(resolved: Path) -> Path:
        resolved_paths.append(resolved)
        return tmp_path / "locks" / "lock"

    with editing_toml(tmp_path / "link.toml", lock_path_of=lock_path_of) as file:
        file.text = "a = 1\n"
        file.write()

    assert resolved_paths == [resolve(tmp_path / "settings.toml")]
    assert os.listdir(tmp_path / "locks") == ["lock"]
    assert not (tmp_path / ".settings.toml.lock").exists()


@pytest.mark.parametrize("is_link", [False, True])
def test_the_lock_is_taken_only_once_if_the_link_stays_the_same(
    tmp_path: Path,
    is_link: bool,
) -> None:
    path = tmp_path / "settings.toml"
    if is_link:
        path.symlink_to(tmp_path / "real.toml")
    locks = []

    def make_lock(lock_path: Path, name: str) -> Lock:
        locks.append((lock_path, name))
        assert len(locks) == 1, "the lock is taken again and again"
        return Lock(lock_path, name)

    with editing_toml(path, make_lock=make_lock) as file:
        resolved = file.before.path

    assert resolved == resolve(path)
    assert locks == [(lock_beside(resolved), resolved.name)]


def test_the_lock_is_a_hidden_file_in_a_directory_that_is_created_private(tmp_path: Path) -> None:
    lock_path = lock_beside(tmp_path / "new" / "settings.toml")

    assert lock_path == tmp_path / "new" / ".settings.toml.lock"
    assert (tmp_path / "new").is_dir()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_the_lock_leaves_a_directory_that_exists_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)

    lock_path = lock_beside(tmp_path / "shared" / "settings.toml")

    assert lock_path == tmp_path / "shared" / ".settings.toml.lock"
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o777


def test_a_changed_text_that_is_not_written_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("a = 1\n")

    with editing_toml(path) as file:
        file.text = "a = 2\n"

    assert path.read_text() == "a = 1\n"


def test_an_edit_without_a_lock_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("a = 1\n")
    edit = TomlEdit(read_toml(path))

    edit.text = "a = 2\n"
    edit.write()

    assert path.read_text() == "a = 1\n"
    assert edit.version == read_toml(path).version


def test_the_version_changes_only_when_the_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("a = 1\n")

    with editing_toml(path) as file:
        version_of_the_old_file = file.version
        file.text = "a = 2\n"
        version_before_the_write = file.version
        file.write()
        version_after_the_write = file.version

    assert version_before_the_write == version_of_the_old_file == file.before.version
    assert version_after_the_write == read_toml(path).version
    assert version_after_the_write != version_of_the_old_file
    assert len(version_after_the_write) == 16


@pytest.mark.parametrize("mode", [0o444, 0o400])
def test_a_read_only_file_is_not_replaced(tmp_path: Path, mode: int) -> None:
    """The rename alone would succeed. And for root, os.access() says that the file is writable."""
    path = tmp_path / "settings.toml"
    path.write_text("a = 1\n")
    path.chmod(mode)

    with editing_toml(path) as file:
        file.text = "a = 2\n"
        error = failure_of(file.write)

    assert isinstance(error, PermissionError)
    assert (error.errno, error.filename) == (errno.EACCES, str(path))
    assert error.strerror == "the file is read-only"
    assert path.read_text() == "a = 1\n"


@pytest.mark.parametrize("name", ["settings.toml", "missing/below/settings.toml"])
def test_a_file_in_a_directory_without_write_permission_is_unwritable(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    content = read_toml(tmp_path / name)
    refuse_unwritable(content)
    # For root, every directory is writable.
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)

    error = failure_of(lambda: refuse_unwritable(content))

    assert isinstance(error, PermissionError)
    assert error.filename == str(tmp_path)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_that_its_owner_may_write_to_is_replaced(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("a = 1\n")
    path.chmod(mode)

    with editing_toml(path) as file:
        file.text = "a = 2\n"
        file.write()

    assert path.read_text() == "a = 2\n"


def test_after_the_deadline_nothing_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("a = 1\n")
    now = [0.0]
    signals = Signals(clock=lambda: now[0])
    signals.limit(5)

    with editing_toml(path, 10, partial(Lock, signals=signals)) as file:
        file.text = "a = 2\n"
        now[0] = 5.0
        error = failure_of(file.write)

    assert isinstance(error, DeadlineExceeded)
    assert path.read_text() == "a = 1\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_under_the_lock_nothing_is_changed(
    tool: Tool,
    file: Path,
    number: int,
) -> None:
    old_text = file.read_text()

    def reads_the_file(event: Event) -> bool:
        return event.name == "open" and event.path == str(file)

    with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
        stepped.run_until("fcntl.flock")
        stepped.run_until(reads_the_file)
        stepped.signal(number)
        ended = stepped.finish()

    assert ended.status == -number
    assert as_ran(ended).code == "INTERRUPTED"
    assert file.read_text() == old_text


@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK], ids=["plain", "byte order mark"])
def test_a_file_grows_up_to_the_size_that_can_be_read_again(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(mark + b"a = 1\n")
    # Each of these characters has two bytes.
    room_bytes = MAX_TOML_BYTES - len(mark) - len("#\n")
    largest = "#" + "ü" * (room_bytes // 2) + "x" * (room_bytes % 2) + "\n"

    with editing_toml(path) as file:
        file.text = largest
        error_at_the_limit = failure_of(file.write)
        file.text = f"{largest}\n"
        error = failure_of(file.write)

    assert error_at_the_limit is None
    assert isinstance(error, UnsafePath)
    assert error.path == str(path)
    assert error.reason == "it would become larger than 256 KiB"
    assert read_toml(path).text == largest
    assert path.stat().st_size == MAX_TOML_BYTES


def test_each_error_about_the_size_has_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"#" * (MAX_TOML_BYTES + 1))

    error = failure_of(lambda: read_regular(path, MAX_TOML_BYTES))

    assert isinstance(error, UnsafePath)
    assert error.reason == f"it is {TOO_LARGE}" == "it is larger than 256 KiB"


def test_a_file_that_does_not_exist_reads_as_an_empty_one(tmp_path: Path) -> None:
    text = read_toml(tmp_path / "settings.toml")

    assert text.path == tmp_path / "settings.toml"
    assert (text.text, text.document, text.links) == ("", {}, 0)


def test_an_empty_file_has_the_version_of_a_file_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").touch()

    empty = read_toml(tmp_path / "empty.toml")
    missing = read_toml(tmp_path / "missing.toml")

    assert empty.version == missing.version
    assert empty.links == 1


def test_two_contents_with_the_same_text_have_two_versions(tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_bytes(b"a = 1\n")
    (tmp_path / "marked.toml").write_bytes(BYTE_ORDER_MARK + b"a = 1\n")

    plain = read_toml(tmp_path / "plain.toml")
    marked = read_toml(tmp_path / "marked.toml")

    assert plain.text == marked.text
    assert plain.version != marked.version
    assert (plain.has_byte_order_mark, marked.has_byte_order_mark) == (False, True)


def test_a_byte_that_is_not_utf_8_is_reported_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"a = '\xff'\n")

    error = failure_of(lambda: read_toml(path))

    assert isinstance(error, InvalidToml)
    assert (error.path, error.reason) == (str(path), "byte 5 is not UTF-8")


@pytest.mark.parametrize("form", ["lists", "tables", "lists and tables"])
def test_149_levels_in_a_document_are_read_and_150_are_not(form: str) -> None:
    def nested(levels: int) -> str:
        value = "1"
        for level in range(levels):
            if form == "lists" or (form == "lists and tables" and level % 2 == 0):
                value = f"[0, {value}]"
            else:
                value = f"{{x = 0, y = {value}}}"
        return f"a = {value}"

    document = parse(nested(149))

    assert document == tomllib.loads(nested(149))
    with pytest.raises(ValueError, match="it is nested too deep"):
        parse(nested(150))


def test_a_number_with_too_many_digits_is_reported_without_advice_for_programmers() -> None:
    assert parse("a = " + "9" * 4300) == {"a": int("9" * 4300)}

    error = failure_of(lambda: parse("a = " + "9" * 4301))

    assert str(error) == "a number has too many digits"


def test_a_failed_flush_of_the_directory_is_reported_as_a_saved_change(
    tool: Tool,
    file: Path,
) -> None:
    with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
        stepped.run_until("os.rename")
        stepped.run_until("os.fsync")
        stepped.fail(errno.ENOSPC)
        ran = as_ran(stepped.finish())

    assert (ran.status, ran.code) == (1, "NOT_FLUSHED")
    assert ran.error["context"]["path"] == str(file)
    assert "was saved" in ran.error["message"]
    assert "a" in keys(file)


def test_the_next_writer_removes_the_temporary_file_of_a_killed_one(tool: Tool, file: Path) -> None:
    with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
        stepped.run_until("os.rename")
        stepped.kill()
    litter_of_the_killed_writer = litter_in(file.parent)

    next_command = tool("config", "set", "b", "2")

    assert len(litter_of_the_killed_writer) == 1
    assert "recovered_from" in next_command.meta
    assert sorted(os.listdir(file.parent)) == [".tool", "tool.toml"]
