"""tool run-safely"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from sampletool.audit.commands import run_safely as module
from sampletool.audit.commands.run_safely import SerializedRun, check_lock_name, default_lock_name
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.forked import start_python
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import COMMAND, Tool
from tests.audit.support import eventually, is_gone

_ADD = "read n < count; sleep 0.02; echo $((n + 1)) > count"
"""Reads, thinks, writes: of many at once most are lost."""
_HELD = '{"error":{"code":"LOCK_HELD","retry_after_ms":1}}'


def test_what_the_program_prints_and_its_status_are_passed_on(tool: Tool) -> None:
    ran = tool("run-safely", "--", "sh", "-c", "printf 'out\\377'; printf err >&2; exit 3")

    assert ran.status == 3
    assert ran.stdout == b"out\xff"
    assert ran.stderr.startswith(b"err\n")
    assert b'"status":3,"tries":1' in ran.stderr
    response = json.loads(ran.stderr.splitlines()[-1])
    assert (response["ok"], response["error"]["code"]) == (False, "PROGRAM_FAILED")
    assert response["error"]["exit_code"] == response["meta"]["exit_code"] == 3


@pytest.mark.parametrize(
    ("script", "status"), [("exit 255", 255), ("kill -9 $$", 137), ("exit 130", 130)]
)
def test_a_status_above_128_is_a_status(tool: Tool, script: str, status: int) -> None:
    assert tool("run-safely", "--", "sh", "-c", script).status == status


def test_many_at_once_lose_nothing_of_a_program_that_loses_nearly_everything(tool: Tool) -> None:
    calls = scale(8, 40)
    (tool.cwd / "count").write_text("0\n")

    ran = tool.together([["run-safely", "--lock", "count", "--", "sh", "-c", _ADD]] * calls)

    assert [each.status for each in ran] == [0] * calls
    assert (tool.cwd / "count").read_text() == f"{calls}\n"


@pytest.mark.parametrize(
    "says", [f"echo '{_HELD}'; exit 1", "echo text; exit 75"], ids=["an answer", "status 75"]
)
def test_a_program_whose_own_lock_is_held_is_tried_again_and_only_the_last_try_is_heard(
    tool: Tool, says: str
) -> None:
    script = f"echo >> tries; if [ $(wc -l < tries) -lt 3 ]; then {says}; fi; echo done"

    ran = tool("run-safely", "--lock", "x", "--", "sh", "-c", script)

    assert (ran.status, ran.stdout) == (0, b"done\n")
    assert b'"tries":3' in ran.stderr


def test_it_gives_up_after_so_many_tries_or_so_long(tool: Tool) -> None:
    script = "echo >> tries; echo held; exit 75"

    few = tool("run-safely", "--retries", "1", "--", "sh", "-c", script)
    soon = tool("run-safely", "--until", "1ms", "--", "sh", "-c", script)

    assert (few.status, few.stdout, soon.status) == (75, b"held\n", 75)
    assert (tool.cwd / "tries").read_text().count("\n") == 3


@pytest.mark.parametrize("milliseconds", ["-1", f"1{'0' * 400}"])
def test_it_waits_no_longer_than_it_may_whatever_the_program_says(
    tool: Tool, milliseconds: str
) -> None:
    says = f'{{"error":{{"code":"LOCK_HELD","retry_after_ms":{milliseconds}}}}}'

    ran = tool(
        "run-safely",
        "--retries",
        "1",
        "--until",
        "2s",
        "--timeout",
        "20s",
        "--",
        "sh",
        "-c",
        f"echo '{says}'; exit 3",
    )

    assert (ran.status, ran.stdout) == (3, f"{says}\n".encode())


def test_what_is_no_answer_is_output(tool: Tool) -> None:
    ran = tool(
        "run-safely", "--", "sh", "-c", "printf '{\"a\":'; printf '%060000d' 0 | tr 0 '['; exit 3"
    )

    assert (ran.status, ran.stdout) == (3, b'{"a":' + b"[" * 60000)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_passed_on_is_a_failure(tool: Tool) -> None:
    with Path("/dev/full").open("wb") as full:
        call = [*COMMAND[1:], "run-safely", "-q", "--", "echo", "hi"]
        process = start_python(*call, cwd=tool.cwd, env=tool.environ, stdout=full.fileno())
        _, stderr = process.communicate()

    assert process.returncode == 1
    assert b"No space left on device" in stderr
    assert b"echo has succeeded, but its output could not be written" in stderr


@pytest.mark.parametrize(
    ("first", "reason"),
    [("echo", "exec format error"), ("#!/no/sh", "its interpreter does not exist")],
)
def test_a_script_that_the_system_does_not_run_is_not_its_own_failure(
    tool: Tool, first: str, reason: str
) -> None:
    script = tool.cwd / "script"
    script.write_text(f"{first}\n")
    script.chmod(0o755)

    ran = tool("run-safely", "--", "./script")

    assert (ran.status, ran.code) == (5, "COMMAND_NOT_FOUND")
    assert f"script: {reason}." in ran.error["message"]


def test_a_process_that_left_its_group_is_ended_with_a_warning(tool: Tool) -> None:
    leave = (
        "import os; read, write = os.pipe(); os.fork() and os._exit(os.read(read, 1)[0])\n"
        "os.setsid(); os.write(write, bytes(1)); os.mkfifo('fifo'); open('fifo')"
    )

    ran = tool("run-safely", "--", sys.executable, "-c", leave)

    assert ran.status == 0
    assert b'"code":"STRAY_ENDED"' in ran.stderr


def test_another_failure_is_not_tried_again(tool: Tool) -> None:
    assert b'"tries":1' in tool("run-safely", "--", "sh", "-c", "exit 1").stderr


def test_the_holder_is_named_and_no_lock_is_waited_for_longer_than_asked(tool: Tool) -> None:
    first = tool.start(
        "run-safely", "--lock", "one", "--", "sh", "-c", "touch ready; exec sleep 60"
    )
    assert eventually((tool.cwd / "ready").exists)

    ran = tool("run-safely", "--lock", "one", "--lock-timeout", "0", "--", "true")
    other = tool("run-safely", "--lock", "two", "--lock-timeout", "0", "--", "true")
    first.terminate()
    first.wait()

    assert (ran.status, ran.code) == (75, "LOCK_HELD")
    assert ran.error["context"]["holder"]["pid"] == first.pid
    assert other.status == 0


@pytest.mark.leaves_litter
def test_a_signal_ends_the_program_and_kill_9_leaves_it_the_lock(tool: Tool) -> None:
    def start() -> tuple[int, int]:
        process = tool.start(
            "run-safely",
            "--lock",
            "one",
            "--",
            "sh",
            "-c",
            "echo $$ > pid; mv pid is; exec sleep 60",
        )
        assert eventually((tool.cwd / "is").exists)
        child = int((tool.cwd / "is").read_text())
        (tool.cwd / "is").unlink()
        os.kill(process.pid, signal.SIGTERM if not killed else signal.SIGKILL)
        return process.wait(), child

    killed = False
    status, child = start()
    assert status == -signal.SIGTERM
    assert is_gone(child)
    killed = True
    _, child = start()
    ran = tool("run-safely", "--lock", "one", "--lock-timeout", "0", "--", "true")
    os.kill(child, signal.SIGKILL)
    assert ran.code == "LOCK_HELD"
    assert eventually(
        lambda: tool("run-safely", "--lock", "one", "--lock-timeout", "0", "--", "true").status == 0
    )


def test_the_program_sees_the_session_and_nothing_is_left_in_it(tool: Tool, home: Path) -> None:
    ran = tool(
        "run-safely",
        "--session-id",
        "s1",
        "--",
        "sh",
        "-c",
        "echo $TOOL_SESSION_ID; cat; ls $0",
        str(home),
    )

    assert ran.stdout.startswith(b"s1\n")
    sessions = list(home.rglob("s1"))
    assert len(sessions) == 1
    assert [path.name for path in sessions[0].iterdir() if path.name[0] != "."] == []


def test_what_cannot_be_run_is_an_answer_on_stdout(tool: Tool) -> None:
    assert tool("run-safely", "--", "no-such-program").code == "COMMAND_NOT_FOUND"
    assert tool("run-safely").code == "USAGE_ERROR"
    assert tool("run-safely", "--lock", "../x", "--", "true").code == "USAGE_ERROR"
    assert tool("run-safely", "--lock", "null", "--", "true").code == "USAGE_ERROR"
    assert tool("run-safely", "--until", "0", "--", "true").code == "USAGE_ERROR"


def test_a_forecast_runs_nothing(tool: Tool) -> None:
    data = tool("run-safely", "--dry-run", "--", sys.executable, "-c", "open('made', 'w')").data

    assert data["program"] == sys.executable
    assert "status" not in data
    assert not (tool.cwd / "made").exists()


@pytest.mark.parametrize("code", [0, 1, 7, 42, 255])
def test_ok_is_true_exactly_if_the_exit_code_is_0(tool: Tool, code: int) -> None:
    ran = tool("run-safely", "--", "sh", "-c", f"exit {code}")

    response = json.loads(ran.stderr.splitlines()[-1])
    assert ran.status == code
    assert response["ok"] == (code == 0)
    assert response["data"]["status"] == response["meta"]["exit_code"] == code


def test_each_attempt_gets_all_of_a_requested_stdin(tool: Tool) -> None:
    script = "cat; echo >> tries; test $(wc -l < tries) -ge 2 || exit 75"

    ran = tool("run-safely", "--stdin", "--", "sh", "-c", script, stdin=b"some\ninput\n")

    assert (ran.status, ran.stdout) == (0, b"some\ninput\n")
    assert b'"tries":2' in ran.stderr


def test_input_that_the_program_would_not_get_is_refused(tool: Tool) -> None:
    """It was lost without a word."""
    (tool.cwd / "input").write_text("x")

    with (tool.cwd / "input").open("rb") as file:
        process = start_python(
            *COMMAND[1:],
            *("run-safely", "--", "touch", "ran"),
            cwd=tool.cwd,
            env=tool.environ,
            stdin=file.fileno(),
        )
        stdout, _ = process.communicate()

    assert process.returncode == 2
    assert "--stdin" in json.loads(stdout)["error"]["suggestion"]
    assert not (tool.cwd / "ran").exists()


def test_input_that_comes_too_late_is_reported(tool: Tool) -> None:
    reader, writer = os.pipe()
    process = start_python(
        *COMMAND[1:],
        *("run-safely", "--", "sh", "-c", "touch started; while ! test -e go; do sleep 0.01; done"),
        cwd=tool.cwd,
        env=tool.environ,
        stdin=reader,
    )
    assert eventually((tool.cwd / "started").exists)
    os.write(writer, b"late")
    (tool.cwd / "go").touch()
    _, stderr = process.communicate()
    os.close(reader)
    os.close(writer)

    assert process.returncode == 0
    assert b'"code":"STDIN_NOT_READ"' in stderr


@pytest.mark.parametrize(
    ("status", "tries", "lines"),
    [
        (None, 0, ["/bin/git would run while holding the lock git."]),
        (0, 1, []),
        (0, 2, ["/bin/git exited with 0 after 2 attempts."]),
        (75, 6, ["/bin/git exited with 75 after 6 attempts."]),
    ],
)
def test_a_person_reads_about_a_forecast_and_about_several_attempts(
    status: int | None,
    tries: int,
    lines: list[str],
) -> None:
    assert SerializedRun("/bin/git", "git", status, tries).lines() == lines


@pytest.mark.parametrize(
    ("status", "has_written_output", "outcome"),
    [
        (0, True, None),
        (0, False, ("OUTPUT_LOST", 1)),
        (7, True, ("PROGRAM_FAILED", 7)),
        (7, False, ("PROGRAM_FAILED", 7)),
    ],
)
def test_a_run_has_succeeded_if_its_exit_code_is_0_and_its_output_was_written(
    status: int,
    has_written_output: bool,
    outcome: tuple[str, int] | None,
) -> None:
    run = SerializedRun("/bin/git", "git", status, tries=1)

    failure = failure_of(lambda: module._check_success(run, has_written_output=has_written_output))

    if outcome is None:
        assert failure is None
    else:
        assert isinstance(failure, ToolError), repr(failure)
        assert (failure.code, failure.exit_status) == outcome
        assert failure.data == run


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("git", "git"),
        ("/usr/bin/git-lfs", "git-lfs"),
        ("./.-my tool+", "my-tool-"),
        ("...", "program"),
        ("x" * 65, "x" * 64),
    ],
)
def test_the_lock_has_the_name_of_the_program_unless_another_one_is_given(
    program: str,
    name: str,
) -> None:
    assert default_lock_name(program) == name


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("a", True),
        ("9._-", True),
        ("x" * 64, True),
        ("x" * 65, False),
        (".a", False),
        ("a/b", False),
    ],
)
def test_the_name_of_a_lock_has_1_to_64_characters(name: str, is_valid: bool) -> None:
    failure = failure_of(lambda: check_lock_name(name))

    assert (failure is None) is is_valid, failure


def stop(tool: Tool, script: str) -> dict[str, Any]:
    """Run a script that creates the file `ready`, send SIGTERM then, and return the response."""
    process = tool.start("run-safely", "--json", "--", "sh", "-c", script)
    assert eventually((tool.cwd / "ready").exists)
    process.terminate()
    stdout, _ = process.communicate(timeout=60)
    response: dict[str, Any] = json.loads(stdout)
    return response


def test_what_a_stopped_program_had_printed_is_in_the_response(tool: Tool) -> None:
    response = stop(tool, "echo begun; echo careful >&2; touch ready; exec sleep 60")

    assert response["error"]["code"] == "INTERRUPTED"
    data = response["data"]
    assert (data["stdout_tail"], data["stderr_tail"]) == ("begun\n", "careful\n")
    assert (data["tries"], data["missing_bytes"]) == (1, 0)
    assert "truncated" not in response["meta"]
    assert response["meta"]["untrusted"] == ["stdout_tail", "stderr_tail"]


def test_only_the_end_of_a_long_output_is_in_the_response(tool: Tool) -> None:
    response = stop(tool, "yes no | head -c 5000; echo end; touch ready; exec sleep 60")

    data = response["data"]
    assert len(data["stdout_tail"]) == 4096
    assert data["stdout_tail"].endswith("end\n")
    assert data["missing_bytes"] == 5004 - 4096
    assert response["meta"]["truncated"]


def test_a_program_that_was_never_started_has_no_output(tool: Tool) -> None:
    first = tool.start(
        "run-safely", "--lock", "one", "--", "sh", "-c", "touch ready; exec sleep 60"
    )
    assert eventually((tool.cwd / "ready").exists)

    ran = tool("run-safely", "--lock", "one", "--timeout", "1s", "--", "true")
    first.terminate()
    first.wait()

    assert (ran.code, ran.response["data"]) == ("TIMEOUT", None)


def test_the_output_of_a_stopped_program_is_shown_to_people_as_well() -> None:
    run = SerializedRun("sh", "one", stdout_tail="a\nb\n", stderr_tail="c\n", missing_bytes=0)

    assert run.lines() == ["a", "b", "c"]
