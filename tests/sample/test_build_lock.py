"""sampletool/sample/build_lock.py: what a command needs to run jobs."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.context import Context
from sampletool.kit.safety.signals import Signals
from sampletool.sample import build_lock as module
from sampletool.sample.build_lock import LockMode, build_lock

_MANY = 1_000_000


@pytest.mark.parametrize(
    ("jobs", "max_files", "max_running"),
    [
        (5, resource.RLIM_INFINITY, 5),
        (5, _MANY, 5),
        # Without --jobs, it is the setting.
        (None, _MANY, 7),
        # 40 files are reserved, and each job needs 3.
        (5, 52, 4),
        (5, 51, 3),
        (5, 10, 1),
    ],
)
def test_no_more_jobs_run_than_the_limit_of_open_files_allows(
    monkeypatch: pytest.MonkeyPatch,
    jobs: int | None,
    max_files: int,
    max_running: int,
) -> None:
    context: Any = SimpleNamespace(jobs=lambda: 7)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (max_files, _MANY))

    assert module._max_running(context, jobs) == max_running


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tool.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("mode", "removed"), [("exclusive", True), ("shared", False)])
def test_only_a_build_removes_what_a_killed_command_has_left(
    workspace: Path,
    mode: LockMode,
    removed: bool,
) -> None:
    """While tests share the lock, it belongs to another command that is running."""
    context = Context(Signals())
    leftover = workspace / ".tool" / "tmp" / "leftover"
    with build_lock(context, "shared", None, force_unlock=False) as workplace:
        scratch = workplace.scratch
        assert scratch.is_dir()
        assert scratch.parent == leftover.parent
        leftover.mkdir()
    assert not scratch.exists()

    with build_lock(context, mode, None, force_unlock=False):
        assert leftover.exists() is not removed


class FakeChildren:
    """Children that have left processes running."""

    def __init__(self, *_arguments: object) -> None:
        self.strays = [42]
        self.has_started = True

    def __enter__(self) -> "FakeChildren":
        return self

    def __exit__(self, *_error: object) -> None:
        pass


@pytest.mark.parametrize(("has_started", "ignored"), [(True, []), (False, ["ignored"])])
def test_the_duration_counts_only_if_a_job_was_started(
    monkeypatch: pytest.MonkeyPatch,
    workspace: Path,
    has_started: bool,
    ignored: list[str],
) -> None:
    seen: list[str] = []
    warnings: list[object] = []
    hold = SimpleNamespace(descriptors=[], ignore_duration=lambda: seen.append("ignored"))
    context = Context(Signals())
    arguments: list[object] = []

    @contextmanager
    def fake_hold(*given: object) -> Iterator[object]:
        arguments.extend(given)
        yield hold

    monkeypatch.setattr(context, "hold", fake_hold)
    monkeypatch.setattr(context, "warn", lambda *warning: warnings.append(warning))
    monkeypatch.setattr(module, "Children", FakeChildren)
    monkeypatch.setattr(module, "end_orphans", lambda _path, _signals: [41])

    with build_lock(context, "exclusive", 3, force_unlock=True) as workplace:
        children: Any = workplace.children
        children.has_started = has_started
        assert workplace.max_running == 3

    lock_path = workspace / ".tool" / "locks" / "build.lock"
    assert seen == ignored
    assert arguments == [lock_path, "build", "exclusive", 0]
    assert warnings == [
        (
            "ORPHAN_ENDED",
            "Process 41 was terminated. A command that has exited had left it running.",
        ),
        ("STRAY_ENDED", "Process 42 was terminated. A command had left it running."),
    ]


def test_without_force_unlock_no_process_is_ended(
    monkeypatch: pytest.MonkeyPatch,
    workspace: Path,
) -> None:
    searched: list[object] = []
    monkeypatch.setattr(module, "end_orphans", lambda *arguments: searched.append(arguments))

    with build_lock(Context(Signals()), "exclusive", 1, force_unlock=False):
        assert (workspace / ".tool" / "tmp").is_dir()

    assert searched == []
