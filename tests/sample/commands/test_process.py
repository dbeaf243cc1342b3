"""tool process"""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.testing.forked import start_python
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import COMMAND, Process, Tool
from sampletool.sample.csv_file import MAX_PART_BYTES
from tests.sample.support import (
    PATIENCE_SECONDS,
    TIMES,
    are_gone,
    children_of,
    is_alive,
    read_lines,
    set_usual_ms,
    state_of,
    usual_ms,
    wait_until,
)


@pytest.fixture
def data(tool: Tool) -> Path:
    path = tool.cwd / "data.csv"
    path.write_text("id,name,day\n1,ä,2024-01-01\n2,,2024-02-01\n3,x,2024-03-01\n")
    return path


@pytest.fixture
def large(tool: Tool) -> Path:
    """Return a file that is divided into several parts, for several workers.

    A worker needs only to work for longer than a test takes to find and stop it. Rows of many
    different characters would take 3 times as long to write.
    """
    path = tool.cwd / "large.csv"
    note = "text of no account " * 10
    rows = "".join(f"{n},{n / 7:.4f},{note}\n" for n in range(20_000))
    path.write_text("id,amount,note\n" + rows)
    return path


def read(path: str | Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(Path(path).read_bytes())
    return result


def session_result(home: Path, session_id: str) -> Path:
    return home / "tmpdir" / f"tool-{os.getuid()}" / session_id / "result.json"


def test_the_profile_is_in_the_session_and_in_the_response(
    tool: Tool, data: Path, home: Path
) -> None:
    ran = tool("process", "--input", "data.csv", "--session-id", "demo")

    assert ran.data["effect"] == "created"
    assert ran.data["output"] == str(session_result(home, "demo"))
    assert (ran.data["rows"], ran.data["columns"]) == (3, 3)
    columns = read(ran.data["output"])["columns"]
    assert ran.data["profile"] == columns
    assert columns[0] == {
        "name": "id",
        "count": 3,
        "missing": 0,
        "type": "integer",
        "min": 1,
        "max": 3,
        "mean": 2.0,
        "distinct": 3,
        "frequent": [{"value": value, "count": 1} for value in "123"],
    }
    assert (columns[1]["type"], columns[1]["count"], columns[1]["missing"]) == ("text", 2, 1)


@pytest.mark.usefixtures("data")
def test_a_result_that_is_reused_does_not_change_the_usual_duration(tool: Tool, home: Path) -> None:
    args = ("process", "--input", "data.csv", "--session-id", "demo")
    assert tool(*args).data["effect"] == "created"
    lock_path = session_result(home, "demo").with_name(".result.json.lock")
    assert usual_ms(lock_path) is not None
    set_usual_ms(lock_path, 123_456)

    assert tool(*args).data["effect"] == "unchanged"

    assert usual_ms(lock_path) == 123_456


def test_the_result_of_the_same_content_is_reused(tool: Tool, data: Path) -> None:
    created = tool("process", "--input", data, "--output", "out.json").data
    copy = tool.cwd / "copy.csv"
    copy.write_bytes(data.read_bytes())

    reused = tool("process", "--input", copy, "--output", "out.json", "--jobs", "2").data

    assert (created["effect"], reused["effect"]) == ("created", "unchanged")
    assert reused == {**created, "effect": "unchanged"}


def test_the_result_of_another_content_is_not_replaced(tool: Tool, data: Path) -> None:
    tool("process", "--input", data, "--output", "out.json")
    before = (tool.cwd / "out.json").read_bytes()
    data.write_text("id\n1\n")

    refused = tool("process", "--input", data, "--output", "out.json")

    assert (refused.code, refused.status) == ("OUTPUT_EXISTS", 6)
    assert "delete it" in refused.error["suggestion"]
    assert (tool.cwd / "out.json").read_bytes() == before


def test_another_delimiter_is_another_result(tool: Tool, data: Path) -> None:
    tool("process", "--input", data, "--output", "out.json")

    refused = tool("process", "--input", data, "--output", "out.json", "--delimiter", ";")

    assert refused.code == "OUTPUT_EXISTS"


def test_a_tab_can_be_the_delimiter(tool: Tool) -> None:
    (tool.cwd / "data.tsv").write_text("a\tb\n1\t2\n")

    ran = tool("process", "--input", "data.tsv", "--delimiter", "tab")

    assert [column["name"] for column in ran.data["profile"]] == ["a", "b"]


def test_a_person_sees_the_profile_as_a_table(tool: Tool, data: Path) -> None:
    ran = tool("process", "--input", data, "--output", "out.json", "--format", "text")

    first, *table = ran.text.splitlines()
    assert first.endswith("out.json: created (3 rows, 3 columns)")
    assert [re.split("  +", line) for line in table] == [
        ["NAME", "TYPE", "COUNT", "MISSING", "DISTINCT", "MIN", "MAX", "MEAN", "FREQUENT"],
        ["id", "integer", "3", "0", "3", "1", "3", "2", "1 (1)"],
        ["name", "text", "2", "1", "2", "x", "ä", "-", "ä (1)"],
        ["day", "text", "3", "0", "3", "2024-01-01", "2024-03-01", "-", "2024-01-01 (1)"],
    ]


def test_a_mean_has_six_digits_for_people(tool: Tool) -> None:
    (tool.cwd / "thirds.csv").write_text("a\n1\n1\n2\n")

    ran = tool("process", "--input", "thirds.csv", "--output", "out.json", "--format", "text")

    assert "  1.33333  " in ran.text


@pytest.mark.parametrize(
    ("jobs_setting", "args", "workers"),
    [("5", ["--jobs", "1"], 1), ("1", ["--jobs", "2"], 2), ("1", [], 1)],
)
def test_as_many_workers_run_as_jobs_are_allowed(
    tool: Tool, large: Path, jobs_setting: str, args: list[str], workers: int
) -> None:
    caller = Tool({**tool.environ, "TOOL_JOBS": jobs_setting}, tool.cwd)
    process = caller.start("process", "--input", large, "--output", "out.json", *args)
    with workers_stopped(process) as first:
        found = set(first)
        if workers == 2:
            wait_until(lambda: len(children_of(process.pid)) == workers)
        found.update(children_of(process.pid))

    assert len(found) == workers
    assert json.loads(process.communicate()[0])["ok"]


def test_the_response_has_the_first_of_many_columns_and_the_output_has_all(tool: Tool) -> None:
    names = ",".join(f"c{number}" for number in range(1000))
    (tool.cwd / "wide.csv").write_text(f"{names}\n{','.join('1' * 1000)}\n")

    ran = tool("process", "--input", "wide.csv", "--output", "out.json")

    assert ran.data["columns"] == 1000
    assert 100 < len(ran.data["profile"]) < 1000
    assert len(ran.stdout) < 64 * 1024
    assert len(read(tool.cwd / "out.json")["columns"]) == 1000
    assert ran.meta["truncated"]


@pytest.mark.parametrize(
    ("cells", "is_truncated"),
    [
        (["x" * 200], False),
        (["x" * 201], True),
        (["1" + "0" * 200, "1"], True),
        (["1", "2"], False),
        ([*"aabbccddee", "a" * 201, "f"], False),
    ],
    ids=["fits", "too long", "long number", "numbers", "not shown"],
)
def test_a_response_that_shows_only_the_start_of_a_value_is_truncated(
    tool: Tool, cells: list[str], is_truncated: bool
) -> None:
    (tool.cwd / "data.csv").write_text("\n".join(["a", *cells]) + "\n")

    created = tool("process", "--input", "data.csv", "--output", "out.json")
    reused = tool("process", "--input", "data.csv", "--output", "out.json")

    assert created.meta.get("truncated", False) is is_truncated
    assert reused.meta.get("truncated", False) is is_truncated
    assert "truncated" not in created.data


def test_control_characters_in_cells_are_escaped_in_the_response_only(tool: Tool) -> None:
    (tool.cwd / "odd.csv").write_text("a\x1b[2J\nb\x07\n")

    (column,) = tool("process", "--input", "odd.csv", "--output", "out.json").data["profile"]

    assert (column["name"], column["frequent"][0]["value"]) == ("a\\x1b[2J", "b\\x07")
    assert read(tool.cwd / "out.json")["columns"][0]["name"] == "a\x1b[2J"


def test_a_dry_run_fails_where_the_command_fails(tool: Tool) -> None:
    (tool.cwd / "bad.csv").write_bytes(b"a,b\n1,2\n3,\xff\n")

    ran = tool("process", "--input", "bad.csv", "--output", "out.json", "--dry-run")

    assert (ran.code, ran.error["context"]["line"]) == ("INVALID_CSV", 3)


def test_silence_is_filled_by_heartbeats(tool: Tool, large: Path) -> None:
    process = tool.start("process", "--input", large, "--output", "out.json", "--format", "jsonl")
    with workers_stopped(process):
        (beat,) = read_lines(process, 1)  # it comes after 1 s of silence

    assert beat["event"] == "heartbeat"
    assert beat["total"] == large.stat().st_size
    assert json.loads(process.communicate()[0].splitlines()[-1])["ok"]


def test_a_command_with_an_output_opens_no_session(tool: Tool, data: Path, home: Path) -> None:
    tool("process", "--input", data, "--output", "out.json", "--session-id", "s")

    assert list((home / "tmpdir").iterdir()) == []


def test_two_sessions_never_share_a_path(tool: Tool, data: Path) -> None:
    runs = tool.together(["process", "--input", data, "--session-id", f"s{n}"] for n in range(2))
    runs += [tool("process", "--input", data) for _ in range(2)]

    assert all(ran.data["effect"] == "created" for ran in runs)
    assert len({ran.data["output"] for ran in runs}) == 4
    assert len({Path(ran.data["output"]).read_bytes() for ran in runs}) == 1


def test_a_dry_run_says_what_would_happen_and_creates_nothing(
    tool: Tool, data: Path, home: Path
) -> None:
    predicted = tool("process", "--input", data, "--dry-run", "--session-id", "s")
    left = [path for path in home.rglob("*") if path.is_file() and path.name != "calls.jsonl"]
    tool("process", "--input", data, "--session-id", "s")
    later = tool("process", "--input", data, "--dry-run", "--session-id", "s")

    assert (predicted.data["effect"], predicted.meta["dry_run"]) == ("created", True)
    assert predicted.data["output"] == str(session_result(home, "s"))
    assert left == []
    assert later.data["effect"] == "unchanged"


def test_the_result_is_the_same_whatever_the_number_of_workers(tool: Tool, large: Path) -> None:
    results = set()
    for jobs in (1, 2):
        tool("process", "--input", large, "--jobs", str(jobs), "--output", f"{jobs}.json")
        results.add((tool.cwd / f"{jobs}.json").read_bytes())

    assert len(results) == 1


def test_cells_with_line_ends_can_be_read_by_several_workers(tool: Tool) -> None:
    row = '1,"two\nlines"\n'
    count = 3 * MAX_PART_BYTES // len(row)
    (tool.cwd / "quoted.csv").write_text("a,b\n" + row * count)

    ran = tool("process", "--input", "quoted.csv", "--output", "out.json", "--jobs", "2")

    assert ran.data["rows"] == count
    assert ran.data["profile"][1]["frequent"] == [{"value": "two\\nlines", "count": count}]


@pytest.mark.parametrize(
    ("content", "line"),
    [("a,b\n1,2\nshort\n", 3), ("", 1), ('a,"b\n1,2\n', 1), ("a,b\n1," + "x" * 3_000_000, 2)],
    ids=["short", "empty", "open header", "long line"],
)
def test_a_bad_row_ends_the_command_and_its_line_is_reported(
    tool: Tool, content: str, line: int
) -> None:
    (tool.cwd / "bad.csv").write_text(content)

    ran = tool("process", "--input", "bad.csv", "--output", "out.json")

    assert (ran.code, ran.status, ran.error["context"]["line"]) == ("INVALID_CSV", 2, line)
    assert not (tool.cwd / "out.json").exists()


def test_lines_are_counted_from_the_start_of_the_file_also_in_a_later_part(
    tool: Tool, large: Path
) -> None:
    lines = large.read_text().count("\n")
    with large.open("a") as file:
        file.write("short\n")

    assert tool("process", "--input", large).error["context"]["line"] == lines + 1


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing.csv", "FILE_NOT_FOUND"),
        ("fifo.csv", "UNSAFE_PATH"),
        (".", "UNSAFE_PATH"),
        ("data.csv/x", "UNSAFE_PATH"),
    ],
)
@pytest.mark.usefixtures("data")
def test_an_input_that_cannot_be_opened_is_reported_before_anything_is_created(
    tool: Tool, home: Path, name: str, code: str
) -> None:
    os.mkfifo(tool.cwd / "fifo.csv")

    ran = tool("process", "--input", name)

    assert ran.code == code
    assert str(tool.cwd / name) in ran.error["message"]
    assert list((home / "tmpdir").iterdir()) == []


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--delimiter", "ab"], "USAGE_ERROR"),
        (["--jobs", "0"], "USAGE_ERROR"),
        (["--output", "data.csv"], "OUTPUT_EXISTS"),
        (["--output", "no/such/out.json"], "FILE_NOT_FOUND"),
        (["--output", "data.csv/out.json"], "UNSAFE_PATH"),
        (["--output", "."], "OUTPUT_EXISTS"),
        (["--output", ""], "USAGE_ERROR"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tool: Tool, data: Path, args: list[str], code: str
) -> None:
    before = data.read_bytes()

    ran = tool("process", "--input", data, *args)

    assert ran.code == code
    assert data.read_bytes() == before


def test_columns_of_one_name_or_of_none_have_a_profile_each(tool: Tool) -> None:
    (tool.cwd / "names.csv").write_text("a,,a\n1,2,3\n")

    ran = tool("process", "--input", "names.csv")

    assert [column["name"] for column in read(ran.data["output"])["columns"]] == ["a", "", "a"]


def test_an_input_that_changes_while_it_is_read_gives_no_result(tool: Tool, large: Path) -> None:
    process = tool.start("process", "--input", large, "--output", "out.json")
    with workers_stopped(process), large.open("a") as file:
        file.write("1,2,3,4\n")
    response = json.loads(process.communicate()[0])

    assert response.get("error", {}).get("code") == "INPUT_CHANGED"
    assert not (tool.cwd / "out.json").exists()


def test_a_timeout_is_reported_even_if_the_input_has_changed(tool: Tool, large: Path) -> None:
    process = at_work_in_time(tool, "process", "--input", large, "--output", "out.json")
    with workers_stopped(process), large.open("a") as file:
        file.write("1,2,3,4\n")
        file.flush()
        response = json.loads(process.communicate()[0])

    assert response.get("error", {}).get("code") == "TIMEOUT"


def test_of_two_commands_one_works_and_the_error_of_the_other_names_it(
    tool: Tool, data: Path, large: Path
) -> None:
    first = tool.start("process", "--input", large, "--output", "out.json")
    with workers_stopped(first):
        second = tool("process", "--input", data, "--output", tool.cwd / "." / "out.json")

    assert (second.code, second.status) == ("LOCK_HELD", 75)
    assert second.error["context"]["holder"]["pid"] == first.pid
    assert second.error["context"]["holder"]["verified"]
    assert json.loads(first.communicate()[0])["data"]["effect"] == "created"


def test_one_session_used_twice_at_once_has_one_writer(tool: Tool, data: Path, large: Path) -> None:
    first = tool.start("process", "--input", large, "--session-id", "s")
    with workers_stopped(first):
        second = tool(
            "process",
            "--input",
            data,
            "--session-id",
            "s",
            TOOL_STATE_DIR=str(tool.cwd / "other-state"),
        )

    assert second.code == "LOCK_HELD"
    assert (
        tool("process", "--input", data, "--session-id", "s", "--lock-timeout", "20s").code
        == "OUTPUT_EXISTS"
    )
    assert json.loads(first.communicate()[0])["data"]["effect"] == "created"


def test_two_homes_that_share_no_lock_never_overwrite_each_other(
    tool: Tool, tmp_path: Path
) -> None:
    output = tool.cwd / "out.json"
    for n in range(2):
        (tool.cwd / f"{n}.csv").write_text(f"a\n{n}\n")
    call: list[str | Path] = ["process", "--output", output, "--input"]
    homes = [
        Tool({**tool.environ, "XDG_STATE_HOME": str(tmp_path / f"state-{n}")}, tool.cwd)
        for n in range(2)
    ]

    with (
        homes[0].stepped(*call, "0.csv", watch=output) as one,
        homes[1].stepped(*call, "1.csv", watch=output) as two,
    ):
        for each in (one, two):
            each.run_until("os.link")
        responses = [json.loads(each.finish().stdout) for each in (one, two)]

    assert responses[0]["data"]["effect"] == "created"
    assert responses[1]["error"]["code"] == "OUTPUT_EXISTS"
    assert read(output)["about"]["input"] == responses[0]["data"]["sha256"]


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[Path]:
    """Create a directory on another file system than that of the test."""
    for place in map(Path, ("/dev/shm", "/var/tmp")):
        if os.access(place, os.W_OK) and place.stat().st_dev != tmp_path.stat().st_dev:
            directory = Path(tempfile.mkdtemp(prefix="tool-test-", dir=place))
            yield directory
            shutil.rmtree(directory)
            return
    pytest.skip("there is no second file system to write to")


def test_sessions_may_be_on_another_device(tool: Tool, data: Path, other_device: Path) -> None:
    session = tool("process", "--input", data, TMPDIR=str(other_device), TOOL_SESSION_ID="s")

    assert Path(session.data["output"]).parent.parent.parent == other_device
    assert session.data["effect"] == "created"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("moment", ["while inputs are read", "while workers work"])
def test_a_signal_leaves_no_process_and_no_half_output(
    tool: Tool, data: Path, large: Path, number: signal.Signals, moment: str
) -> None:
    for turn in range(scale(1, 50)):
        output = tool.cwd / f"{turn}.json"
        if "read" in moment:
            process = stopped_while_it_reads(tool, large, output)
            workers = []
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            stdout, _ = process.communicate()
        else:
            process = tool.start("process", "--input", large, "--output", output)
            with workers_stopped(process) as workers:
                process.send_signal(number)
            stdout, _ = process.communicate()

        assert process.returncode == -number
        assert are_gone(workers)
        assert not output.exists()
        assert number == signal.SIGKILL or json.loads(stdout)["error"]["code"] == "INTERRUPTED"
    assert tool("process", "--input", data, "--output", "0.json").data["effect"] == "created"


def stopped_while_it_reads(tool: Tool, large: Path, output: Path) -> Process:
    """Return a command that is stopped while it reads its input.

    If it has read everything before it could be stopped, start another one.
    """
    while True:
        # A process of our own, not of the fork server: only its parent is told that it has stopped.
        process = tool.start_fresh("process", "--input", large, "--output", output)
        while process.poll() is None and large.name not in opened_by(process.pid):
            time.sleep(0.005)
        if process.returncode is None:
            os.kill(process.pid, signal.SIGSTOP)
            wait_until_stopped_or_exited(process.pid)
            if large.name in opened_by(process.pid):
                return process
        process.kill()
        process.communicate()
        output.unlink(missing_ok=True)


def wait_until_stopped_or_exited(pid: int) -> None:
    wait_until(lambda: state_of(pid) in ("T", "Z", ""))


def opened_by(pid: int) -> set[str]:
    """Return the names of the files that a process has open."""
    names = set()
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            names.add(os.path.basename(os.readlink(f"/proc/{pid}/fd/{number}")))
    return names


def test_a_time_limit_ends_the_workers_too(tool: Tool, large: Path) -> None:
    process = at_work_in_time(tool, "process", "--input", large, "--output", "out.json")
    with workers_stopped(process) as workers:
        response = json.loads(process.communicate()[0])

    assert (response["error"]["code"], process.returncode) == ("TIMEOUT", 10)
    assert not any(map(is_alive, workers))
    assert not (tool.cwd / "out.json").exists()


def test_a_worker_that_is_killed_is_an_error_and_nothing_is_published(
    tool: Tool, large: Path
) -> None:
    process = tool.start("process", "--input", large, "--output", "out.json")
    with workers_stopped(process) as workers:
        os.kill(workers[0], signal.SIGKILL)
    response = json.loads(process.communicate()[0])

    assert response["error"]["code"] == "WORKER_LOST"
    assert str(workers[0]) in response["error"]["message"]
    assert not (tool.cwd / "out.json").exists()


def start_on_terminal(tool: Tool, *call: str | Path, **environ: str) -> tuple[Process, int]:
    """Return a call whose stderr is a terminal, and the descriptor that reads from it."""
    ours, theirs = os.openpty()
    env = tool.environ | {"TERM": "xterm"} | environ
    process = start_python(*COMMAND[1:], *call, cwd=tool.cwd, env=env, stderr=theirs)
    os.close(theirs)
    return process, ours


def test_progress_is_shown_on_a_terminal(tool: Tool, large: Path) -> None:
    process, terminal = start_on_terminal(tool, "process", "--input", large)

    shown = b""
    with workers_stopped(process):
        while not re.search(rb"process \[#* *\] +\d+%", shown):
            assert select.select([terminal], [], [], PATIENCE_SECONDS)[0], (
                f"only this came: {shown!r}"
            )
            shown += os.read(terminal, 65536)

    assert json.loads(process.communicate()[0])["ok"]
    os.close(terminal)


def test_progress_is_shown_nowhere_else(tool: Tool, data: Path) -> None:
    """The first line would come before the first row is read, so that a small file is enough."""
    for args, environ in ((["--quiet"], {}), ([], {"CI": "1"})):
        process, terminal = start_on_terminal(tool, "process", "--input", data, *args, **environ)
        assert json.loads(process.communicate()[0])["ok"]
        assert read_all(terminal) == b""

    assert tool("process", "--input", data).stderr == b""


_PEAK = """
import resource, subprocess, sys
ran = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, ran.stdout.decode())
"""
"""Prints the largest memory of each process of a program, in KiB, and what the program printed.

It is a process of its own, because a child begins with the largest memory of the process that
started it. For the same reason, the program is not forked from the fork server.
"""


@pytest.mark.parametrize("kind", ["many columns", "huge cells", "all different"])
def test_no_process_grows_beyond_60_mb(tool: Tool, kind: str) -> None:
    path = tool.cwd / "big.csv"
    with path.open("w") as file:
        if kind == "many columns":
            file.write(",".join(f"c{n}" for n in range(1000)) + "\n")
            file.writelines(
                ",".join(str(row * 7919 + n) for n in range(1000)) + "\n" for row in range(600)
            )
        elif kind == "huge cells":
            file.write("a,b\n")
            file.writelines(f"{row}{'x' * 100_000},{row}\n" for row in range(300))
        else:
            file.write(",".join("abcdefgh") + "\n")
            file.writelines(
                ",".join(f"{row}-{n}" for n in range(8)) + "\n" for row in range(50_000)
            )

    call = [
        sys.executable,
        "-S",
        "-E",
        "-c",
        _PEAK,
        *COMMAND,
        "process",
        "--input",
        str(path),
        "--jobs",
        "2",
    ]
    ran = subprocess.run(
        call, cwd=tool.cwd, env=tool.environ, stdin=subprocess.DEVNULL, capture_output=True
    )
    peak_kib, response = ran.stdout.split(b" ", 1)

    assert json.loads(response)["ok"]
    assert int(peak_kib) < 60 * 1024


def at_work_in_time(tool: Tool, *call: str | Path) -> Process:
    """Start a command with a --timeout that is long enough to come to its work."""
    for seconds in TIMES:
        process = tool.start(*call, "--timeout", f"{seconds}s")
        has_workers = wait_for_workers_or_exit(process)
        if has_workers:
            return process
    raise AssertionError("the command has not come to its work")


def wait_for_workers_or_exit(process: Process) -> bool:
    """Return whether the command has workers. If it has not, it has exited."""
    wait_until(lambda: children_of(process.pid) or process.poll() is not None)
    return process.poll() is None


@contextmanager
def workers_stopped(process: Process) -> Iterator[list[int]]:
    """Keep the workers of a command stopped until the block ends."""
    workers = wait_until(lambda: children_of(process.pid))
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    yield workers
    for pid in filter(is_alive, workers):
        os.kill(pid, signal.SIGCONT)


def read_all(descriptor: int) -> bytes:
    content = b""
    try:
        while block := os.read(descriptor, 65536):
            content += block
    except OSError:
        pass
    os.close(descriptor)
    return content


@pytest.mark.usefixtures("data")
def test_an_empty_output_is_not_taken_for_the_current_directory(tool: Tool) -> None:
    refused = tool("process", "--input", "data.csv", "--output", "")

    assert refused.code == "USAGE_ERROR"
    assert "the path is empty" in refused.error["message"]
    assert "delete" not in refused.error["suggestion"]
