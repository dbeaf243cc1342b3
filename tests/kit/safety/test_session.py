"""A session's directory is private, shared by its runs, and never removed while one uses it."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.commands.session import clean
from sampletool.kit.context import Context
from sampletool.kit.places import session_root
from sampletool.kit.safety import session as session_module
from sampletool.kit.safety.clock import utc
from sampletool.kit.safety.errors import LockTimeout, UnsafeDirectory
from sampletool.kit.safety.holder import Owners
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.lock_record import describe_me
from sampletool.kit.safety.session import (
    correct_last_use,
    is_session_id,
    list_sessions,
    open_session,
    remove_session,
    sweep_trash,
)
from sampletool.kit.safety.signals import Signals
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.failing import failure_in, failure_of, outcome_of
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.tool import Tool

NOW = 1_800_000_000.0
WEEK = 7 * 24 * 3600


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def make_lock(path: Path, name: str) -> Lock:
    return Lock(path, name, describe_me("s", "test"))


def make_session(root: Path, session_id: str, last_used: float | None = None) -> Path:
    """Create a session that is not in use, with a last use in seconds since 1970."""
    with open_session(root, session_id, make_lock, 1) as directory:
        pass
    if last_used is not None:
        os.utime(directory, (last_used, last_used))
    return directory


# Open


def test_a_session_can_be_used_and_then_removed(root: Path) -> None:
    def use_and_remove() -> tuple[list[str], bool, bool, list[str]]:
        with open_session(root, "s", make_lock, 1) as directory:
            (directory / "result").touch()
            listed = [session.session_id for session in list_sessions(root)]
            is_removed_in_use = remove_session(directory, make_lock)
        is_removed_later = remove_session(directory, make_lock)
        sweep_trash(root)
        return listed, is_removed_in_use, is_removed_later, os.listdir(root)

    assert outcome_of(use_and_remove) == (["s"], False, True, [])


@pytest.mark.parametrize("session_id", ["../outside", "..", "a/b", ".hidden", ""])
def test_a_directory_outside_of_the_root_is_no_session(root: Path, session_id: str) -> None:
    error = failure_in(open_session(root, session_id, make_lock, 1))

    assert isinstance(error, ValueError)
    assert not root.exists()
    assert not (root.parent / "outside").exists()


def test_two_runs_use_one_session_at_once_and_both_are_listed(root: Path) -> None:
    with open_session(root, "s", make_lock, 1) as one, open_session(root, "s", make_lock, 1) as two:
        assert one == two == root / "s"
        assert list_sessions(root)[0].in_use_by == [os.getpid(), os.getpid()]

    assert list_sessions(root)[0].in_use_by == []


def test_the_directories_of_sessions_are_private(root: Path) -> None:
    directory = make_session(root, "s")

    assert oct(directory.stat().st_mode & 0o777) == oct(0o700)
    assert oct(root.stat().st_mode & 0o777) == oct(0o700)


@pytest.mark.parametrize("place", ["root", "session"])
def test_a_directory_that_others_can_write_to_is_not_used(root: Path, place: str) -> None:
    directory = make_session(root, "s")
    unsafe = root if place == "root" else directory
    unsafe.chmod(0o777)

    error = failure_in(open_session(root, "s", make_lock, 1))

    assert isinstance(error, UnsafeDirectory)
    assert error.path == str(unsafe)


def test_a_session_that_was_removed_is_created_again(root: Path) -> None:
    with open_session(root, "s", make_lock, 1) as directory:
        (directory / "result").touch()
    remove_session(directory, make_lock)

    with open_session(root, "s", make_lock, 1) as again:
        assert not (again / "result").exists()


_OPEN = """
import os, sys
from pathlib import Path
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.session import open_session
with open_session(Path(sys.argv[1]), "s", Lock, 60) as directory:
    assert directory.is_dir()
"""


def test_a_session_that_is_removed_while_a_run_opens_it_is_created_again(tmp_path: Path) -> None:
    root, program = session_root(), tmp_path / "open.py"
    program.write_text(_OPEN)
    command = [str(program), str(root)]
    with SteppedProcess(command, watch=root, fork_server=fork_server()) as stepped:
        stepped.run_until(lambda step: step.name == "fcntl.flock" and step.path.endswith(".lock"))

        assert remove_session(root / "s", make_lock)

        ended = stepped.finish()
    assert ended.status == 0, ended.stderr
    assert (root / "s").is_dir()


class VanishingLock:
    """A lock whose directory is removed before it can be taken, the first `times` times.

    Each time, another run has created the directory again.
    """

    def __init__(self, directory: Path, times: int) -> None:
        self.attempts = 0
        self._directory = directory
        self._times = times

    @contextmanager
    def shared(self, _timeout_seconds: float) -> Iterator[None]:
        self.attempts += 1
        if self.attempts <= self._times:
            self._directory.rmdir()
            self._directory.mkdir(mode=0o700)
            raise FileNotFoundError(str(self._directory))
        yield


def test_a_session_that_is_removed_five_times_is_created_six_times(root: Path) -> None:
    lock: Any = VanishingLock(root / "s", times=5)

    failure = failure_in(open_session(root, "s", lambda _path, _name: lock, 1))

    assert failure is None
    assert lock.attempts == 6


def test_a_session_that_is_removed_again_and_again_is_not_used_without_its_lock(root: Path) -> None:
    lock: Any = VanishingLock(root / "s", times=6)

    failure = failure_in(open_session(root, "s", lambda _path, _name: lock, 1))

    assert isinstance(failure, FileNotFoundError)
    assert lock.attempts == 6


def test_a_session_is_waited_for_as_long_as_was_said(root: Path) -> None:
    timeouts = []

    @contextmanager
    def shared(timeout_seconds: float) -> Iterator[None]:
        timeouts.append(timeout_seconds)
        yield

    lock: Any = SimpleNamespace(shared=shared)
    with open_session(root, "s", lambda _path, _name: lock, 12.5):
        pass

    assert timeouts == [12.5]


def test_the_lock_of_a_session_has_the_name_of_the_session(root: Path) -> None:
    names = []

    def make_named_lock(path: Path, name: str) -> Lock:
        names.append((path, name))
        return make_lock(path, name)

    with open_session(root, "s", make_named_lock, 1) as directory:
        pass
    remove_session(directory, make_named_lock)

    assert names == [(root / "s" / ".lock", "session s")] * 2


def test_entering_and_leaving_a_session_are_uses(root: Path) -> None:
    directory = make_session(root, "s", last_used=0)
    with open_session(root, "s", make_lock, 1):
        entered_at = list_sessions(root)[0].last_used_at
        os.utime(directory, (0, 0))
    left_at = list_sessions(root)[0].last_used_at

    assert entered_at > "2026"
    assert left_at > "2026"


def test_a_session_whose_directory_the_caller_deleted_is_left_without_an_error(root: Path) -> None:
    with open_session(root, "s", make_lock, 1) as directory:
        for file in directory.iterdir():
            if file.is_file():
                file.unlink()
        (directory / ".lock.readers").rename(root.parent / "readers")
        directory.rmdir()

    assert list_sessions(root) == []


# List


def test_the_session_that_was_used_last_comes_first(root: Path) -> None:
    for name, last_used in (("b", NOW - 1000), ("c", NOW), ("a", NOW - 500)):
        make_session(root, name, last_used)

    assert [session.session_id for session in list_sessions(root)] == ["c", "a", "b"]


def test_sessions_of_the_same_second_are_sorted_by_their_names(root: Path) -> None:
    for name in ("b", "c", "a"):
        make_session(root, name, NOW)

    assert [session.session_id for session in list_sessions(root)] == ["a", "b", "c"]


def test_a_session_is_listed_with_its_path_and_last_use(root: Path) -> None:
    directory = make_session(root, "s", NOW)

    (session,) = list_sessions(root)

    assert session.path == str(directory)
    assert session.last_used_at == utc(NOW) == "2027-01-15T08:00:00Z"


def test_without_a_root_there_are_no_sessions_and_none_is_created(root: Path) -> None:
    assert outcome_of(lambda: list_sessions(root)) == []
    assert not root.exists()


def test_a_root_that_others_can_write_to_is_not_listed(root: Path) -> None:
    make_session(root, "s")
    root.chmod(0o777)

    with pytest.raises(UnsafeDirectory):
        list_sessions(root)


def test_only_directories_with_the_name_of_a_session_are_listed(root: Path, tmp_path: Path) -> None:
    make_session(root, "s")
    (root / "file").touch()
    (root / ".removed-abc").mkdir()
    (root / "a..b").mkdir()
    (root / "linked").symlink_to(tmp_path)

    listed = outcome_of(lambda: [session.session_id for session in list_sessions(root)])

    assert listed == ["s"]


def test_a_session_that_is_removed_while_it_is_listed_is_left_out(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a", "b", "c"):
        make_session(root, name)

    def living_readers(lock_path: Path) -> list[Any]:
        if lock_path.parent.name == "b":
            assert remove_session(lock_path.parent, make_lock)
        return []

    monkeypatch.setattr(session_module, "living_readers", living_readers)

    sessions = outcome_of(lambda: {session.session_id for session in list_sessions(root)})

    assert sessions == {"a", "c"}


@pytest.mark.parametrize("text", ["a", "A-b_c.9", "0", "x" * 64])
def test_a_session_id(text: str) -> None:
    assert is_session_id(text)


@pytest.mark.parametrize(
    "text",
    ["", ".a", "-a", "_a", "a/b", "a..b", "a b", "a\n", "ä", "x" * 65],
)
def test_no_session_id(text: str) -> None:
    assert not is_session_id(text)


# Remove


def test_a_session_in_use_is_not_removed(root: Path) -> None:
    with open_session(root, "s", make_lock, 1) as directory:
        assert not remove_session(directory, make_lock)
        assert directory.exists()

    assert remove_session(directory, make_lock)
    assert os.listdir(root) == []


def test_a_directory_whose_name_is_no_session_id_is_neither_listed_nor_removed(root: Path) -> None:
    directory = root / ".project"
    directory.mkdir(mode=0o700, parents=True)
    (directory / "report.txt").touch()
    root.chmod(0o700)

    listed = outcome_of(lambda: list_sessions(root))
    error = failure_of(lambda: remove_session(directory, make_lock))

    assert listed == []
    assert isinstance(error, ValueError)
    assert os.listdir(directory) == ["report.txt"]


@pytest.mark.parametrize("names", [[], [".lock.gate"]], ids=["empty", "gate only"])
def test_a_session_whose_creation_was_interrupted_can_be_removed(
    root: Path, names: list[str]
) -> None:
    directory = root / "s"
    directory.mkdir(mode=0o700, parents=True)
    root.chmod(0o700)
    for name in names:
        (directory / name).touch()

    listed = [session.session_id for session in list_sessions(root)]
    is_removed = remove_session(directory, make_lock)

    assert listed == ["s"]
    assert is_removed
    assert os.listdir(root) == []


def test_a_directory_that_is_gone_is_not_removed(root: Path) -> None:
    assert outcome_of(lambda: remove_session(root / "s", make_lock)) is False


@pytest.mark.parametrize("reason", ["in use", "never there", "gone before the rename"])
def test_a_session_that_cannot_be_removed_is_no_failure_whatever_the_reason(
    tmp_path: Path,
    reason: str,
) -> None:
    directory = tmp_path / "s"
    directory.mkdir(mode=0o700)
    timeouts = []

    @contextmanager
    def exclusively(timeout_seconds: float) -> Iterator[None]:
        timeouts.append(timeout_seconds)
        if reason == "in use":
            raise LockTimeout("session s", Owners([]))
        if reason == "never there":
            raise FileNotFoundError(str(directory))
        directory.rmdir()
        yield

    lock: Any = SimpleNamespace(exclusively=exclusively)

    assert outcome_of(lambda: remove_session(directory, lambda _path, _name: lock)) is False
    assert timeouts == [0]


@pytest.mark.parametrize(
    ("last_used", "is_removed"),
    [(NOW - 1, True), (NOW, True), (NOW + 1, False)],
)
def test_a_session_that_was_used_after_the_given_moment_is_kept(
    root: Path,
    last_used: float,
    is_removed: bool,
) -> None:
    directory = make_session(root, "s", last_used)

    assert remove_session(directory, make_lock, unused_since=utc(NOW)) == is_removed
    assert directory.exists() != is_removed


def test_a_session_is_renamed_away_before_anything_of_it_is_deleted(tool: Tool) -> None:
    """Naive: a run that uses the same ID at that moment gets a directory that is half gone."""
    root = session_root()
    with open_session(root, "s", make_lock, 1) as directory:
        (directory / "result").touch()
    tool.environ["TOOL_SESSION_TTL"] = "0"
    with tool.stepped("session", "clean", watch=root) as stepped:
        stepped.run_until("os.rmdir")

        assert not directory.exists()
        assert stepped.finish().status == 0


def test_a_session_that_another_process_is_deleting_too_is_removed(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process may sweep the trash between the rename and the deletion."""
    directory = make_session(root, "s")
    really_rename = Path.rename

    def rename_and_sweep(path: Path, target: Path) -> None:
        really_rename(path, target)
        sweep_trash(root)

    monkeypatch.setattr(Path, "rename", rename_and_sweep)

    assert outcome_of(lambda: remove_session(directory, make_lock)) is True
    assert os.listdir(root) == []


def test_what_an_interrupted_removal_left_is_swept_and_nothing_else(root: Path) -> None:
    interrupted = make_session(root, "s")
    interrupted.rename(root / ".removed-abc")
    make_session(root, "kept")
    (root / ".hidden").mkdir()

    sweep_trash(root)

    assert sorted(os.listdir(root)) == [".hidden", "kept"]


def test_without_a_root_there_is_nothing_to_sweep(root: Path) -> None:
    failure = failure_of(lambda: sweep_trash(root))

    assert failure is None
    assert not root.exists()


def test_trash_that_cannot_be_deleted_is_passed_over(root: Path) -> None:
    """To delete a directory fails where there is a file, as it does where nothing is left."""
    root.mkdir(mode=0o700)
    for number in range(3):
        (root / f".removed-{number}").mkdir()
    (root / ".removed-file").touch()

    failure = failure_of(lambda: sweep_trash(root))

    assert failure is None
    assert os.listdir(root) == [".removed-file"]


# A last use in the future


@pytest.mark.parametrize(
    ("last_used", "limited"),
    [
        (NOW + 365 * 24 * 3600, NOW),
        (NOW + 61, NOW),
        (NOW + 60, NOW + 60),
        (NOW, NOW),
        (NOW - 1000, NOW - 1000),
    ],
)
def test_a_last_use_in_the_future_becomes_now(root: Path, last_used: float, limited: float) -> None:
    """The clocks of a file server and of this machine may differ by a minute."""
    directory = make_session(root, "s", last_used)

    failure = failure_of(lambda: correct_last_use(directory, NOW))

    assert failure is None
    assert directory.stat().st_mtime == limited


def test_a_session_that_is_gone_has_no_last_use_to_limit(root: Path) -> None:
    failure = failure_of(lambda: correct_last_use(root / "s", NOW))

    assert failure is None
    assert not root.exists()


def test_a_session_that_was_used_in_the_future_is_removed_a_week_after_it_was_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Naive: a run on a machine with a wrong clock leaves a session that is kept for years."""
    directory = make_session(session_root(), "s", NOW + 1000 * WEEK)

    removed_at_once = clean_at(NOW, monkeypatch)
    removed_too_early = clean_at(NOW + WEEK - 1, monkeypatch)
    removed_after_a_week = clean_at(NOW + WEEK, monkeypatch)

    assert (removed_at_once, removed_too_early, removed_after_a_week) == ([], [], ["s"])
    assert not directory.exists()


def test_a_session_that_was_used_in_the_future_is_removed_where_every_age_is_too_old(
    tool: Tool,
) -> None:
    make_session(session_root(), "s", time.time() + WEEK)

    forecast = tool("session", "clean", "--dry-run", TOOL_SESSION_TTL="0")
    is_still_in_the_future = (session_root() / "s").stat().st_mtime > time.time()
    cleaned = tool("session", "clean", TOOL_SESSION_TTL="0")

    assert forecast.data["removed"] == ["s"]
    assert is_still_in_the_future
    assert cleaned.data["removed"] == ["s"]


# The commands


def clean_at(now: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run `session clean` at this moment. Return the sessions that it removed."""
    monkeypatch.setattr(clean, "time", SimpleNamespace(time=lambda: now))
    context = Context(Signals())
    typer_context: Any = SimpleNamespace(obj=context)
    with context.exit_stack:
        return clean.command(typer_context).removed


@pytest.mark.parametrize(
    ("unused_seconds", "is_removed"),
    [(WEEK - 1, False), (WEEK, True)],
)
def test_a_session_is_removed_when_it_has_not_been_used_for_a_week(
    unused_seconds: int,
    is_removed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = make_session(session_root(), "old", NOW - unused_seconds)

    removed = clean_at(NOW, monkeypatch)

    assert (removed == ["old"]) == is_removed
    assert directory.exists() != is_removed


def test_sessions_are_listed_and_cleaned_by_hand(tool: Tool) -> None:
    assert tool("session", "list").data == {"sessions": []}
    nothing = tool("session", "clean").data
    assert (nothing["effect"], nothing["unused_for"]) == ("unchanged", "7d")
    text = tool("session", "clean", "--format", "text", TOOL_SESSION_TTL="36h").text
    assert text == "No session has been unused for 1.5d (session_ttl).\n"
    root = session_root()
    with open_session(root, "mine", make_lock, 1):
        ran = tool("session", "list")
        assert ran.data["sessions"][0]["session_id"] == "mine"
        assert ran.data["sessions"][0]["in_use_by"] == [os.getpid()]
        assert tool("session", "clean", TOOL_SESSION_TTL="0").data["in_use"] == ["mine"]

    forecast = tool("session", "clean", "--dry-run", TOOL_SESSION_TTL="0")
    assert (forecast.data["removed"], forecast.meta["dry_run"]) == (["mine"], True)
    assert tool("session", "clean").data["removed"] == []
    assert tool("session", "clean", TOOL_SESSION_TTL="auto").data["removed"] == []
    assert tool("session", "clean", TOOL_SESSION_TTL="0").data["removed"] == ["mine"]
    assert os.listdir(root) == []


def test_a_planted_link_in_place_of_the_sessions_is_refused(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "victim").mkdir(parents=True)
    session_root().symlink_to(tmp_path / "elsewhere")

    assert tool("session", "clean", TOOL_SESSION_TTL="0").code == "UNSAFE_DIRECTORY"
    assert (tmp_path / "elsewhere" / "victim").exists()


def test_a_session_that_is_used_while_it_is_looked_at_keeps_what_was_just_made(tool: Tool) -> None:
    """Naive: who was stopped after looking at the age removes a result of a moment ago."""
    root = session_root()
    directory = make_session(root, "s", last_used=0)
    with tool.stepped("session", "clean", watch=root) as stepped:
        stepped.run_until(lambda event: event.name == "open" and event.path.endswith(".lock.gate"))
        with open_session(root, "s", make_lock, 1):
            (directory / "result").touch()

        answer = json.loads(stepped.finish().stdout)

    assert (directory / "result").exists()
    assert answer["data"]["removed"] == []


def test_a_link_among_the_sessions_is_neither_listed_nor_removed(
    tool: Tool,
    tmp_path: Path,
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    make_session(session_root(), "s")
    (session_root() / "linked").symlink_to(victim)

    assert [session.session_id for session in list_sessions(session_root())] == ["s"]
    assert tool("session", "clean", TOOL_SESSION_TTL="0").data["removed"] == ["s"]
    assert (session_root() / "linked").is_symlink()
    assert os.listdir(victim) == []
