"""sampletool/kit/call_log.py: no line is lost, whatever other processes do at the same time."""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from sampletool.kit.call_log import append, call_of
from sampletool.kit.commands.log import read_calls
from sampletool.kit.contract.errors import KeyNotFound
from sampletool.kit.contract.response import Response
from sampletool.kit.safety.errors import UnsafePath
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.forked import LONGEST_SECONDS, fork_server, start_python
from sampletool.kit.testing.scale import scale

_APPEND = """
import sys
from pathlib import Path
from sampletool.kit.call_log import append
directory, count, name, max_bytes = sys.argv[1:]
call = {"at": "2026-01-01T00:00:00Z", "command": "log", "exit_code": 0, "duration_ms": 1}
for number in range(int(count)):
    append(Path(directory), {**call, "request_id": f"{name}-{number}"}, int(max_bytes))
"""
"""A program that appends lines."""

_APPEND_NAIVELY = """
import os, sys
from pathlib import Path
directory, count, name, processes = sys.argv[1:]
log = Path(directory, "calls.jsonl")
call = '{"at":"2026","command":"log","exit_code":0,"duration_ms":1,"request_id":"%s-%d"}'
for number in range(int(count)):
    before = log.read_text()
    log.with_name(f"read-by-{name}").touch()
    while len(list(log.parent.glob("read-by-*"))) < int(processes):
        os.sched_yield()
    log.write_text(before + call % (name, number) + "\\n")
"""
"""A program that reads the log, adds a line and writes the log back.

It waits until every process has read the log, so that lines are lost each time.
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return an empty directory for a log."""
    directory = tmp_path / "state"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def append_script(tmp_path: Path) -> Path:
    """Return the file of a program that appends lines."""
    script = tmp_path / "append.py"
    script.write_text(_APPEND)
    return script


def _call(name: str) -> dict[str, object]:
    return {
        "at": "2026-01-01T00:00:00Z",
        "command": "log",
        "exit_code": 0,
        "duration_ms": 1,
        "request_id": name,
    }


def _names(directory: Path) -> list[str]:
    """Return the names of the calls in the log, the newest first."""
    return [call.request_id for call in read_calls(directory)]


def _start_stepped(
    script: Path,
    directory: Path,
    name: str,
    max_bytes: int,
) -> SteppedProcess:
    """Start the program, which appends one line. It stops before each change to the directory."""
    return SteppedProcess(
        [str(script), str(directory), "1", name, str(max_bytes)],
        watch=directory,
        fork_server=fork_server(),
    )


# Several processes at the same time


def _run_processes(program: str, directory: Path, processes: int, count: int, last: int) -> None:
    """Run the program in several processes at the same time. `last` is its last argument."""
    running = []
    for number in range(processes):
        arguments = [str(directory), str(count), str(number), str(last)]
        running.append(start_python("-c", program, *arguments))
    for process in running:
        process.communicate(timeout=LONGEST_SECONDS)
    assert [process.returncode for process in running] == [0] * processes


def test_many_processes_lose_no_line_while_files_are_put_away(directory: Path) -> None:
    processes = scale(6, 50)
    lines_of_each = 40
    # A file has room for more than half of the lines, so that one file is put away.
    append(directory, _call("0-00"))
    line_bytes = (directory / "calls.jsonl").stat().st_size
    max_bytes = processes * lines_of_each * line_bytes * 6 // 10
    (directory / "calls.jsonl").unlink()

    _run_processes(_APPEND, directory, processes, lines_of_each, max_bytes)

    expected = []
    for process in range(processes):
        expected += [f"{process}-{number}" for number in range(lines_of_each)]
    assert sorted(_names(directory)) == sorted(expected)
    assert (directory / "calls.before.jsonl").stat().st_size > max_bytes


def test_processes_that_write_the_log_back_lose_lines(directory: Path) -> None:
    """The naive way."""
    processes = scale(6, 50)
    (directory / "calls.jsonl").touch()

    _run_processes(_APPEND_NAIVELY, directory, processes, 1, processes)

    assert len(_names(directory)) < processes


def test_a_line_that_is_written_to_a_removed_file_is_written_again(
    directory: Path,
    append_script: Path,
) -> None:
    with _start_stepped(append_script, directory, "late", max_bytes=1000) as stepped:
        stepped.run_until("os.write")
        (directory / "calls.jsonl").unlink()
        stepped.finish()

    assert _names(directory) == ["late-0"]


def test_no_process_waits_for_one_that_is_stopped_while_it_puts_a_file_away(
    directory: Path,
    append_script: Path,
) -> None:
    with _start_stepped(append_script, directory, "stopped", max_bytes=1) as stepped:
        stepped.run_until("os.rename")

        append(directory, _call("meanwhile"), max_bytes=1)

        assert _names(directory)[0] == "meanwhile"


def test_a_file_that_another_process_has_just_put_away_is_not_put_away_again(
    directory: Path,
    append_script: Path,
) -> None:
    with _start_stepped(append_script, directory, "second", max_bytes=1) as stepped:
        stepped.run_until("fcntl.flock")
        (directory / "calls.jsonl").rename(directory / "calls.before.jsonl")
        ran = stepped.finish()

    assert (ran.status, ran.stderr) == (0, b"")
    assert _names(directory) == ["second-0"]


def test_the_new_file_of_another_process_is_not_put_away(
    directory: Path,
    append_script: Path,
) -> None:
    with _start_stepped(append_script, directory, "second", max_bytes=1) as stepped:
        stepped.run_until("fcntl.flock")
        (directory / "calls.jsonl").rename(directory / "calls.before.jsonl")
        append(directory, _call("new"))
        stepped.finish()

    assert (directory / "calls.jsonl").exists()
    assert _names(directory) == ["new", "second-0"]


# A process that is killed


def _stop_at_each_event(script: Path, directory: Path) -> Iterator[SteppedProcess]:
    """Yield a process that is stopped before its first event, one before its second, and so on.

    Each process appends a line and puts the file away.
    """
    for steps in range(1, 20):
        with _start_stepped(script, directory, f"at-{steps}", max_bytes=1) as stepped:
            for _ in range(steps):
                if stepped.next_event is not None:
                    stepped.step()
            if stepped.next_event is None:
                return
            yield stepped
    raise AssertionError("the program does not end")


def test_kill_9_at_any_moment_leaves_whole_lines_and_the_next_line_is_logged(
    directory: Path,
    append_script: Path,
) -> None:
    killed = 0
    for stepped in _stop_at_each_event(append_script, directory):
        stepped.kill()
        killed += 1

        append(directory, _call(f"next-{killed}"))

        assert _names(directory)[0] == f"next-{killed}"
        lines = [line for path in directory.iterdir() for line in path.read_text().splitlines()]
        assert len(lines) == len(_names(directory))
    assert killed >= 3


# The two files


def test_two_files_are_kept(directory: Path) -> None:
    for number in range(5):
        append(directory, _call(str(number)), max_bytes=1)
    append(directory, _call("last"))

    files = sorted(path.name for path in directory.iterdir())
    assert files == ["calls.before.jsonl", "calls.jsonl"]
    assert _names(directory) == ["last", "4"]


def test_a_file_is_put_away_only_when_it_is_larger_than_the_limit(directory: Path) -> None:
    append(directory, _call("1"))
    size = (directory / "calls.jsonl").stat().st_size

    append(directory, _call("2"), max_bytes=2 * size)
    assert not (directory / "calls.before.jsonl").exists()

    append(directory, _call("3"), max_bytes=3 * size - 1)
    assert (directory / "calls.before.jsonl").exists()


def test_other_users_cannot_read_the_log(directory: Path) -> None:
    append(directory, _call("1"))

    assert (directory / "calls.jsonl").stat().st_mode & 0o077 == 0


# What is in the place of the log


def test_a_link_in_the_place_of_the_log_is_not_followed(directory: Path) -> None:
    target = directory.parent / "precious"
    target.write_text("mine")
    (directory / "calls.jsonl").symlink_to(target)

    with pytest.raises(OSError, match="symbolic links"):
        append(directory, _call("1"))
    with pytest.raises(OSError, match="symbolic links"):
        _names(directory)

    assert target.read_text() == "mine"


def _is_refused_at_once(function: Callable[[], object]) -> bool:
    """Return whether the function raises UnsafePath, and does not wait.

    It runs in a thread, because a wait for a FIFO has no end.
    """
    refusals = []

    def run() -> None:
        try:
            function()
        except UnsafePath as error:
            refusals.append(error)
        except OSError:
            # It was opened, and then something failed.
            pass

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(5)
    return bool(refusals)


@pytest.mark.parametrize("kind", ["FIFO", "second name"])
def test_a_fifo_or_a_file_with_a_second_name_is_refused_at_once(directory: Path, kind: str) -> None:
    path = directory / "calls.jsonl"
    if kind == "FIFO":
        os.mkfifo(path)
    else:
        path.touch()
        (directory.parent / "precious").hardlink_to(path)

    assert _is_refused_at_once(lambda: append(directory, _call("1")))
    assert _is_refused_at_once(lambda: _names(directory))
    assert path.stat().st_size == 0


def test_a_line_after_one_that_a_full_disk_has_cut_is_not_lost(directory: Path) -> None:
    append(directory, _call("1"))
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    room_for_a_part = (directory / "calls.jsonl").stat().st_size + 20
    resource.setrlimit(resource.RLIMIT_FSIZE, (room_for_a_part, hard_limit))
    try:
        append(directory, _call("cut"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft_limit, hard_limit))

    append(directory, _call("2"))
    append(directory, _call("3"))

    assert _names(directory) == ["3", "2", "1"]
    assert len((directory / "calls.jsonl").read_text().splitlines()) == 4


_INVALID_MEMBERS: list[tuple[str, object]] = [
    ("at", 5),
    ("at", None),
    ("code", None),
    ("duration_ms", "1"),
    ("exit_code", 1.5),
    ("dry_run", 1),
    ("about", 5),
    ("about", [5]),
    ("about", None),
    ("unknown", "x"),
]


@pytest.mark.parametrize(("member", "value"), _INVALID_MEMBERS)
def test_a_line_with_an_invalid_member_is_skipped(
    directory: Path,
    member: str,
    value: object,
) -> None:
    append(directory, _call("1"))
    append(directory, {**_call("invalid"), member: value})
    append(directory, _call("2"))

    assert _names(directory) == ["2", "1"]


@pytest.mark.parametrize("line", [b'{"cut', b"[]", b'{"at": 1}', b"\xff", b"[" * 3000, b""])
def test_a_line_that_the_tool_did_not_write_is_skipped(directory: Path, line: bytes) -> None:
    append(directory, _call("1"))
    with (directory / "calls.jsonl").open("ab") as log:
        log.write(line + b"\n")
    append(directory, _call("2"))

    assert _names(directory) == ["2", "1"]


# What is logged of a response

_META = {
    "command": "config.set",
    "exit_code": 0,
    "duration_ms": 7,
    "request_id": "1",
    "timestamp": "2026-01-01T00:00:00Z",
    "schema_version": "1.0",
}


def _answer(result: Any, error: KeyNotFound | None = None) -> Response:
    return Response(result=result, error=error, warnings=[], meta=_META)


def test_a_line_has_the_facts_of_the_response_and_no_value() -> None:
    result = {"effect": "updated", "key": "jobs", "value": "never logged"}

    line = call_of(_answer(result), {})

    assert line == {
        "at": "2026-01-01T00:00:00Z",
        "command": "config.set",
        "exit_code": 0,
        "duration_ms": 7,
        "request_id": "1",
        "effect": "updated",
        "about": ["jobs"],
    }


def test_the_line_of_a_failure_has_its_code_and_the_subject_of_the_error() -> None:
    line = call_of(_answer(None, KeyNotFound(key="jobs", where="/w/tool.toml")), {})

    assert line["code"] == "KEY_NOT_FOUND"
    assert line["about"] == ["jobs"]
    assert "effect" not in line


def test_a_result_that_is_not_an_object_has_no_subjects() -> None:
    assert call_of(_answer(["a"]), {})["about"] == []


def test_the_subjects_of_listed_items_are_logged_once_each_and_of_20_items_at_most() -> None:
    items: list[Any] = [{"key": f"key{number}"} for number in range(30)]
    result = {"path": "/w", "changes": ["no object", {"key": "key0"}, *items], "count": 30}

    subjects = call_of(_answer(result), {})["about"]

    assert subjects == ["/w", *[f"key{number}" for number in range(19)]]


def test_a_subject_is_short_and_has_no_password() -> None:
    url = "redis://user:hunter2@host/" + "x" * 5000

    (subject,) = call_of(_answer({"name": url}), {})["about"]

    assert subject.startswith("redis://user:***@host/xxx")
    assert len(subject) == 200


def test_a_password_that_goes_beyond_the_end_of_a_subject_is_masked() -> None:
    url = f"redis://user:{'hunter2' * 50}@host"

    (subject,) = call_of(_answer({"name": url}), {})["about"]

    assert subject == "redis://user:***@host"


@pytest.mark.parametrize("name", ["key", "name", "id", "queue", "lock", "path", "output"])
def test_each_name_of_a_thing_is_a_subject(name: str) -> None:
    assert call_of(_answer({name: "it"}), {})["about"] == ["it"]


def test_a_subject_that_is_no_text_is_not_logged() -> None:
    assert call_of(_answer({"id": 7, "key": None, "name": "it"}), {})["about"] == ["it"]


def test_a_line_has_the_facts_that_only_some_responses_have() -> None:
    meta = {**_META, "session_id": "s-1", "trace_id": "t-1", "dry_run": True, "cwd": "/w"}

    line = call_of(Response(result=None, error=None, warnings=[], meta=meta), {})

    some = {name: line.get(name) for name in ("session_id", "trace_id", "dry_run", "cwd")}
    assert some == {"session_id": "s-1", "trace_id": "t-1", "dry_run": True, "cwd": "/w"}
