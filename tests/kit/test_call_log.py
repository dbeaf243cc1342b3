"""The log of calls loses no line: not beside other writers, not while files are put away, not to kill -9."""

import json
import os
import resource
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Thread

import pytest

from sampletool.kit.call_log import append
from sampletool.kit.commands.log import read_calls
from sampletool.kit.safety.errors import UnsafePath
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.forked import LONGEST_SECONDS, fork_server, start_python
from sampletool.kit.testing.scale import scale

_APPEND = """
import sys
from pathlib import Path
from sampletool.kit.call_log import append
call = {"at": "2026-01-01T00:00:00Z", "command": "log", "exit_code": 0, "duration_ms": 1}
for n in range(int(sys.argv[2])):
    append(Path(sys.argv[1]), {**call, "request_id": f"{sys.argv[3]}-{n}"}, max_bytes=int(sys.argv[4]))
"""
_NAIVE = """
import os, sys
from pathlib import Path
log = Path(sys.argv[1], "calls.jsonl")
for n in range(int(sys.argv[2])):
    before = log.read_text()
    log.with_name(f"read-by-{sys.argv[3]}").touch()
    while len(list(log.parent.glob("read-by-*"))) < int(sys.argv[4]):
        os.sched_yield()
    line = '{"at":"2026","command":"log","exit_code":0,"duration_ms":1,"request_id":"%s-%d"}' % (sys.argv[3], n)
    log.write_text(f"{before}{line}\\n")
"""
"""The first time nobody writes before all have read, so that it does not depend on luck that a line is lost."""


def call(name: str) -> dict[str, object]:
    return {"at": "2026-01-01T00:00:00Z", "command": "log", "exit_code": 0, "duration_ms": 1, "request_id": name}


def names(directory: Path) -> list[str]:
    return [each.request_id for each in read_calls(directory)]


def run_writers(script: str, directory: Path, writers: int, calls: int, last: int) -> None:
    words = ["-c", script, str(directory), str(calls)]
    processes = [start_python(*words, str(writer), str(last)) for writer in range(writers)]
    for process in processes:
        process.communicate(timeout=LONGEST_SECONDS)
    assert [process.returncode for process in processes] == [0] * writers


def expected(writers: int, calls: int) -> list[str]:
    return sorted(f"{writer}-{n}" for writer in range(writers) for n in range(calls))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir(mode=0o700)
    return tmp_path / "state"


def test_many_writers_lose_no_line_while_files_are_put_away(directory: Path) -> None:
    """Naive is to read the log, to add a line, and to write it back."""
    writers, calls = scale(6, 50), 40
    append(directory, call("0-00"))
    largest = writers * calls * (directory / "calls.jsonl").stat().st_size * 6 // 10
    (directory / "calls.jsonl").unlink()

    run_writers(_APPEND, directory, writers, calls, largest)

    assert sorted(names(directory)) == expected(writers, calls)
    assert (directory / "calls.before.jsonl").stat().st_size > largest
    (directory / "calls.before.jsonl").unlink()
    (directory / "calls.jsonl").write_text("")
    run_writers(_NAIVE, directory, writers, 1, writers)
    assert len(names(directory)) < writers


def stopped_at_each_event(directory: Path) -> Iterable[SteppedProcess]:
    """One that appends a line and puts the file away, stopped before its first event, its second, and so on."""
    script = directory.parent / "script.py"
    script.write_text(_APPEND)
    for steps in range(1, 20):
        with SteppedProcess(
            [str(script), str(directory), "1", f"at-{steps}", "1"], watch=directory, fork_server=fork_server()
        ) as stepped:
            for _ in range(steps):
                if stepped.at is not None:
                    stepped.step()
            if stepped.at is None:
                return
            yield stepped
    raise AssertionError("it does not end")


def test_kill_9_at_any_moment_leaves_whole_lines_and_the_next_call_is_logged(directory: Path) -> None:
    killed = 0
    for stepped in stopped_at_each_event(directory):
        stepped.kill()
        killed += 1
        append(directory, call(f"next-{killed}"))
        assert names(directory)[0] == f"next-{killed}"
        lines = [line for path in directory.iterdir() for line in path.read_text().splitlines()]
        assert len(lines) == len(names(directory))

    assert killed >= 3


def test_a_line_that_comes_after_its_file_was_removed_is_written_again(directory: Path) -> None:
    script = directory.parent / "script.py"
    script.write_text(_APPEND)
    with SteppedProcess(
        [str(script), str(directory), "1", "late", "1000"], watch=directory, fork_server=fork_server()
    ) as stepped:
        stepped.run_until("os.write")
        (directory / "calls.jsonl").unlink()
        stepped.finish()

    assert names(directory) == ["late-0"]


def test_two_files_are_kept(directory: Path) -> None:
    for n in range(5):
        append(directory, call(str(n)), max_bytes=1)
    append(directory, call("last"))

    assert sorted(path.name for path in directory.iterdir()) == ["calls.before.jsonl", "calls.jsonl"]
    assert names(directory) == ["last", "4"]


def test_nobody_waits_for_a_process_that_is_stopped_while_it_puts_a_file_away(directory: Path) -> None:
    script = directory.parent / "script.py"
    script.write_text(_APPEND)
    with SteppedProcess(
        [str(script), str(directory), "1", "stopped", "1"], watch=directory, fork_server=fork_server()
    ) as stepped:
        stepped.run_until("os.rename")
        append(directory, call("beside"), max_bytes=1)

        assert names(directory)[0] == "beside"


def test_a_file_that_another_process_has_just_put_away_is_not_missed(directory: Path) -> None:
    script = directory.parent / "script.py"
    script.write_text(_APPEND)
    with SteppedProcess(
        [str(script), str(directory), "1", "second", "1"], watch=directory, fork_server=fork_server()
    ) as stepped:
        stepped.run_until("fcntl.flock")
        (directory / "calls.jsonl").rename(directory / "calls.before.jsonl")
        ran = stepped.finish()

    assert (ran.status, ran.stderr) == (0, b"")
    assert names(directory) == ["second-0"]


def test_a_link_in_the_place_of_the_log_is_not_followed(directory: Path) -> None:
    target = directory.parent / "precious"
    target.write_text("mine")
    (directory / "calls.jsonl").symlink_to(target)

    with pytest.raises(OSError, match="symbolic links"):
        append(directory, call("1"))
    with pytest.raises(OSError, match="symbolic links"):
        names(directory)

    assert target.read_text() == "mine"


def refused_at_once(work: Callable[[], object]) -> bool:
    """In a thread: a wait for a FIFO has no end."""
    refused = []

    def run() -> None:
        try:
            work()
        except UnsafePath as error:
            refused.append(error)
        except OSError:  # not refused, but found out too late
            pass

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(5)
    return bool(refused)


@pytest.mark.parametrize("kind", ["FIFO", "second name"])
def test_what_is_not_a_file_of_the_log_alone_is_refused_at_once(directory: Path, kind: str) -> None:
    path = directory / "calls.jsonl"
    if kind == "FIFO":
        os.mkfifo(path)
    else:
        path.touch()
        (directory.parent / "precious").hardlink_to(path)

    assert refused_at_once(lambda: append(directory, call("1")))
    assert refused_at_once(lambda: names(directory))
    assert path.stat().st_size == 0


def test_a_line_behind_one_that_a_full_disk_has_torn_is_not_lost(directory: Path) -> None:
    append(directory, call("1"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((directory / "calls.jsonl").stat().st_size + 20, hard))
    try:
        append(directory, call("torn"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    append(directory, call("2"))
    append(directory, call("3"))

    assert names(directory) == ["3", "2", "1"]
    assert len((directory / "calls.jsonl").read_text().splitlines()) == 4


def test_what_is_no_line_of_ours_is_passed_over(directory: Path) -> None:
    append(directory, call("1"))
    wrong: list[tuple[str, object]] = [
        ("at", 5),
        ("at", None),
        ("code", None),
        ("duration_ms", "1"),
        ("exit_code", 1.5),
    ]
    wrong += [("dry_run", 1), ("about", 5), ("about", [5]), ("about", None), ("unknown", "x")]
    with (directory / "calls.jsonl").open("ab") as log:
        log.write(b'{"torn\n[]\n{"at": 1}\n\xff\n' + b"[" * 3000 + b"\n")
        log.write(b"".join(json.dumps({**call("wrong"), name: value}).encode() + b"\n" for name, value in wrong))
    append(directory, call("2"))

    assert names(directory) == ["2", "1"]
    assert os.stat(directory / "calls.jsonl").st_mode & 0o077 == 0
