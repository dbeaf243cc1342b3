"""tool task work: a command for every task, through outages, signals and kill -9."""

import json
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.safety.errors import LockTimeout
from sampletool.kit.testing.holding import make_lock
from sampletool.kit.testing.tool import Process, Tool
from sampletool.kit.testing.trees import file_states
from sampletool.state.commands.task.work import spec
from tests.state.support.waiting import (
    is_alive,
    wait_for_line,
    wait_for_pid,
    wait_until,
    wait_until_stopped,
)

Outage = Callable[[Path], AbstractContextManager[object]]
UNTIL_GO = 'echo $$ > "pid-$TOOL_TASK_BODY"; until [ -e "go-$TOOL_TASK_BODY" ]; do sleep 0.05; done'
"""A command that writes its pid, and ends with success when it may."""


def test_work_runs_a_command_for_every_task_and_finishes_it(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "ann", "bob", '{"to":"eve"}')
    script = 'printf "%s\\n" "$TOOL_TASK_BODY" >> out; cmp -s /dev/null "$TOOL_TASK_FILE" || true'

    ran = tool("task", "work", "mail", "--until-empty", "--jobs", "2", "--", "sh", "-c", script)

    assert ran.data | {"logs": ""} == {
        "logs": "",
        "queue": "mail",
        "finished": 3,
        "given_back": 0,
        "lost": 0,
        "failures": [],
        "left": 0,
        "failed": 0,
        "effect": "updated",
    }
    assert sorted((workspace / "out").read_text().splitlines()) == ["ann", "bob", '{"to": "eve"}']
    assert statuses(tool) == ["done"] * 3


def test_two_workers_share_a_queue_and_each_task_has_one_effect(
    tool: Tool, workspace: Path
) -> None:
    tool("task", "add", "mail", *map(str, range(4)))
    count = f'{sys.executable} -m sampletool counter add sent --fence "$TOOL_TASK_FENCE"'
    work = ["task", "work", "mail", "--until-empty", "--jobs", "2", "--", "sh", "-c", count]

    ran = tool.together([work, work])

    assert sum(one.data["finished"] for one in ran) == 4
    assert tool("counter", "get", "sent").data["value"] == 4


def test_a_command_that_fails_is_tried_again_until_its_task_has_failed(
    tool: Tool, workspace: Path
) -> None:
    """After a pause of 0.5 to 1 s, which is the shortest there is."""
    tool("task", "add", "mail", "x", "--id", "a")

    ran = tool(
        "task",
        "work",
        "mail",
        "--until-empty",
        "--max-attempts",
        "2",
        "--",
        "sh",
        "-c",
        "echo oops; exit 3",
    )

    assert (ran.status, ran.code) == (3, "TASKS_FAILED")
    failures = ran.response["data"]["failures"]
    assert [(one["attempts"], one["exit_status"], one["tail"]) for one in failures] == [
        (1, 3, "oops\n"),
        (2, 3, "oops\n"),
    ]
    assert tool("task", "list", "--status", "failed").data["tasks"][0]["id"] == "a"


def test_a_report_with_only_the_end_of_the_output_is_truncated(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x")
    work = ["task", "work", "mail", "--until-empty", "--max-attempts", "1", "--", "sh", "-c"]

    ran = tool(*work, "seq 2000; exit 3")

    (failure,) = ran.response["data"]["failures"]
    assert ran.meta["truncated"]
    assert failure["output_bytes"] == Path(failure["log"]).stat().st_size


def test_a_body_that_does_not_fit_into_the_environment_is_in_the_file(
    tool: Tool, workspace: Path
) -> None:
    bodies = ["a\0b", "x" * 200_000]
    (workspace / "tasks.jsonl").write_text(
        "".join(json.dumps({"body": body}) + "\n" for body in bodies)
    )
    tool("task", "add", "mail", "--from-file", "tasks.jsonl")
    script = 'cat "$TOOL_TASK_FILE" >> out; echo >> out; [ -z "$TOOL_TASK_BODY" ]'

    ran = tool("task", "work", "mail", "--until-empty", "--jobs", "1", "--", "sh", "-c", script)

    assert ran.data["finished"] == 2
    assert [json.loads(line) for line in (workspace / "out").read_text().splitlines()] == bodies


def test_an_interrupted_worker_ends_its_commands_and_gives_their_tasks_back(
    tool: Tool, workspace: Path
) -> None:
    tool("task", "add", "mail", "x", "--id", "a")
    worker = tool.start("task", "work", "mail", "--", "sh", "-c", "echo $$ > pid; exec sleep 600")
    child = wait_for_pid(workspace / "pid")

    worker.send_signal(signal.SIGTERM)
    stdout, _ = worker.communicate(timeout=30)

    response = json.loads(stdout)
    assert response["error"]["code"] == "INTERRUPTED"
    assert response["data"]["given_back"] == 1
    assert "left" not in response["data"]
    assert not is_alive(child)
    assert tool("task", "list", "mail").data["tasks"][0]["status"] == "free"


def test_an_interrupted_worker_kills_a_command_that_ignores_sigterm(
    tool: Tool, workspace: Path
) -> None:
    tool("task", "add", "mail", "x", "--id", "a")
    stubborn = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    worker = tool.start("task", "work", "mail", "--", "sh", "-c", stubborn)
    child = wait_for_pid(workspace / "pid")

    worker.send_signal(signal.SIGTERM)
    stdout, _ = worker.communicate(timeout=30)

    outlived_its_worker = is_alive(child)
    if outlived_its_worker:
        os.kill(child, signal.SIGKILL)
    assert not outlived_its_worker
    assert json.loads(stdout)["error"]["code"] == "INTERRUPTED"
    assert tool("task", "list", "mail").data["tasks"][0]["status"] == "free"


@pytest.mark.leaves_litter
def test_the_command_of_a_killed_worker_does_not_run_beside_its_successor(
    tool: Tool, workspace: Path
) -> None:
    """The command has even left its process group."""
    tool("task", "add", "mail", "x", "--id", "a")
    script = (
        'echo $$ > "pid-$TOOL_TASK_GENERATION"; [ "$TOOL_TASK_GENERATION" = 2 ] || exec sleep 600'
    )
    work = ["task", "work", "mail", "--until-empty", "--", "setsid", "-w", "sh", "-c", script]
    worker = tool.start(*work)
    child = wait_for_pid(workspace / "pid-1")
    worker.kill()
    worker.wait()
    end_lease(tool, "a:1")

    ran = tool(*work)

    assert ran.data["finished"] == 1
    assert not is_alive(child)
    assert [warning["code"] for warning in ran.response["warnings"]][:1] == ["ORPHAN_ENDED"]


@pytest.mark.leaves_litter
def test_the_command_of_a_killed_worker_is_ended_although_its_task_was_retried_by_hand(
    tool: Tool, workspace: Path
) -> None:
    """A retry gives a task all of its attempts back. But its next claim is not its first one."""
    tool("task", "add", "mail", "busy", "x", "--id", "busy", "--id", "x")
    work = ("task", "work", "mail", "--until-empty", "--jobs", "1", "--max-attempts", "1")
    script = f'[ "$TOOL_TASK_BODY" = x ] || {{ {UNTIL_GO}; }}'
    successor = tool.start(*work, "--", "sh", "-c", script)
    wait_for_pid(workspace / "pid-busy")
    killed = tool.start(*work, "--", "setsid", "-w", "sh", "-c", UNTIL_GO)
    child = wait_for_pid(workspace / "pid-x")
    killed.kill()
    killed.wait()
    end_lease(tool, "x:1")
    assert tool("task", "retry", "x").status == 0

    (workspace / "go-busy").touch()

    stdout, _ = successor.communicate(timeout=60)
    assert json.loads(stdout)["data"]["finished"] == 2
    assert not is_alive(child)


def test_the_output_of_commands_is_kept_in_the_session(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "hello", "--id", "a/b")

    ran = tool("task", "work", "mail", "--until-empty", "--", "sh", "-c", "echo $TOOL_TASK_BODY")

    assert (Path(ran.data["logs"]) / "a%2Fb.1.log").read_text() == "hello\n"

    tool("task", "add", "mail", "again")
    shown = tool("task", "work", "mail", "--until-empty", "--format", "text", "--", "echo")

    assert b"The output of the commands is in /" in shown.stdout


def test_a_worker_with_nothing_to_do_reports_once_that_it_waits(
    tool: Tool, workspace: Path
) -> None:
    worker = tool.start("task", "work", "mail", "--verbose", "--", "true")

    wait_for_line(worker, "mail: nothing to do. Waiting for new tasks")

    later_lines = lines_until(worker, b"lock store state.db: asked for", times=2)
    ended(worker)
    assert b"nothing to do" not in b"".join(later_lines)


def test_a_worker_that_waits_for_new_tasks_ends_at_its_timeout(tool: Tool, workspace: Path) -> None:
    assert tool("task", "work", "mail", "--timeout", "100ms", "--", "true").code == "TIMEOUT"


def test_a_worker_with_until_empty_waits_for_a_task_that_another_one_has_claimed(
    tool: Tool, workspace: Path
) -> None:
    tool("task", "add", "mail", "x", "--id", "a")
    tool("task", "claim", "mail", "--lease", "10m")
    worker = tool.start("task", "work", "mail", "--until-empty", "--verbose", "--", "true")
    wait_for_line(worker, "Waiting for tasks that are claimed or delayed")

    tool("task", "release", "a:1")
    stdout, _ = worker.communicate(timeout=60)

    assert json.loads(stdout)["data"]["finished"] == 1


def test_locks_are_taken_in_the_order_of_the_manifest(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x")

    ran = tool("task", "work", "mail", "--until-empty", "--verbose", "--", "true")

    asked = re.findall(r"^lock (\w+).*: asked", ran.stderr.decode(), re.MULTILINE)
    assert list(dict.fromkeys(asked)) == list(spec.locks)


def test_a_worker_whose_command_does_not_exist_claims_nothing(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x")

    assert tool("task", "work", "mail", "--", "./no-such-program").code == "COMMAND_NOT_FOUND"
    assert statuses(tool) == ["free"]


@pytest.mark.parametrize("queue", ["", "x" * 201])
def test_a_worker_with_a_wrong_name_of_a_queue_creates_nothing(
    tool: Tool, workspace: Path, tmp_path: Path, queue: str
) -> None:
    before = file_states(tmp_path)

    assert tool("task", "work", queue, "--", "true").code == "VALIDATION_ERROR"

    assert file_states(tmp_path) == before
    assert workspace


def test_a_lost_lease_ends_the_command(tool: Tool, workspace: Path) -> None:
    """The worker is stopped past its lease. Another caller takes the task meanwhile.

    It asks again when a third of its lease is over, after 1.7 s.
    """
    tool("task", "add", "mail", "x", "--id", "a")
    worker = tool.start("task", "work", "mail", "--lease", "5s", "--", "sh", "-c", UNTIL_GO)
    child = wait_for_pid(workspace / "pid-x")
    stop(worker, workspace)
    end_lease(tool, "a:1")
    (claimed,) = wait_until(lambda: tool("task", "claim", "mail", "--lease", "10m").data["tasks"])
    assert claimed["generation"] == 2

    os.kill(worker.pid, signal.SIGCONT)

    wait_until(lambda: not is_alive(child))
    assert ended(worker)["lost"] == 1
    assert tool("task", "finish", "a:2").data["effect"] == "updated"


def test_a_worker_whose_logs_cannot_be_written_gives_its_tasks_back(
    tool: Tool, workspace: Path
) -> None:
    """As on a full disk."""
    tool("task", "add", "mail", "x", "y")
    spoil = 'mine=$(dirname "$TOOL_TASK_FILE"); : > "$(dirname "$mine")/tasks-$(basename "$mine")"'

    ran = tool(
        "task",
        "work",
        "mail",
        "--jobs",
        "2",
        "--",
        "sh",
        "-c",
        f"{spoil}; echo something; exec sleep 600",
    )

    assert ran.code == "IO_ERROR"
    assert ran.response["data"]["given_back"] == 2
    assert statuses(tool) == ["free"] * 2


def test_a_worker_without_a_lock_timeout_still_waits_to_give_a_task_back(
    tool: Tool, workspace: Path
) -> None:
    tool("task", "add", "mail", "x")
    work = ["task", "work", "mail", "--jobs", "1", "--lock-timeout", "0", "--verbose"]
    worker = tool.start(*work, "--", "sh", "-c", "echo $$ > pid; exec sleep 600")
    wait_for_pid(workspace / "pid")

    with make_lock(workspace / ".tool" / ".state.db.lock").exclusively():
        worker.send_signal(signal.SIGTERM)
        wait_for_line(worker, "lock store state.db: waiting")

    worker.communicate(timeout=30)
    assert statuses(tool) == ["free"]


def test_a_failure_during_an_outage_is_reported_to_the_store_at_the_end(
    tool: Tool, workspace: Path
) -> None:
    tool("task", "add", "mail", "x")
    work = ["task", "work", "mail", "--jobs", "1", "--lock-timeout", "100ms", "--verbose"]
    worker = tool.start(*work, "--", "sh", "-c", f"{UNTIL_GO}; echo why; exit 3")
    wait_for_pid(workspace / "pid-x")

    with make_lock(workspace / ".tool" / ".state.db.lock").exclusively():
        (workspace / "go-x").touch()
        wait_for_line(worker, "the store is unreachable")
        worker.send_signal(signal.SIGTERM)

    data = ended(worker, is_told=True)
    assert [(one["exit_status"], one["tail"]) for one in data["failures"]] == [(3, "why\n")]
    assert (data["given_back"], data["lost"]) == (1, 0)
    assert "free_at" in tool("task", "list", "mail").data["tasks"][0]


@contextmanager
def locked(workspace: Path) -> Iterator[sqlite3.Connection]:
    """Lock the file of the store as another program would. Yield its connection."""
    outsider = sqlite3.connect(workspace / ".tool" / "state.db", isolation_level=None)
    outsider.execute("BEGIN EXCLUSIVE")
    yield outsider
    outsider.execute("ROLLBACK")
    outsider.close()


@pytest.mark.parametrize("outage", [locked], ids=["sqlite locked"])
def test_a_worker_outlives_outages_and_reports_what_succeeded_meanwhile(
    tool: Tool, workspace: Path, outage: Outage
) -> None:
    """While it waits for tasks, and while one of its commands ends and another goes on.

    Outages of servers: tests/state/test_worker.py
    """
    tool("counter", "add", "warm")
    work = [
        "task",
        "work",
        "mail",
        "--jobs",
        "2",
        "--lease",
        "60s",
        "--lock-timeout",
        "200ms",
        "--verbose",
    ]
    worker = tool.start(*work, "--", "sh", "-c", UNTIL_GO)
    wait_for_line(worker, "nothing to do")
    with outage(workspace):
        wait_for_line(worker, "the store is unreachable")
    tool("task", "add", "mail", "quick", "slow")
    pids = [wait_for_pid(workspace / f"pid-{body}") for body in ("quick", "slow")]

    with outage(workspace):
        (workspace / "go-quick").touch()
        wait_until(lambda: not is_alive(pids[0]))
        wait_for_line(worker, "the store is unreachable")
        assert is_alive(pids[1])
    (workspace / "go-slow").touch()

    wait_until(lambda: statuses(tool) == ["done"] * 2)
    assert [task["attempts"] for task in tool("task", "list", "mail").data["tasks"]] == [1, 1]
    assert (counts := ended(worker))["finished"] == 2
    assert counts["lost"] == counts["given_back"] == 0


def test_a_task_whose_command_failed_is_delayed(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x")
    worker = tool.start(
        "task", "work", "mail", "--", "sh", "-c", "echo $$ > pid-$TOOL_TASK_GENERATION; exit 1"
    )
    freed = wait_until(
        lambda: [one for one in tool("task", "list").data["tasks"] if "free_at" in one]
    )
    ended(worker)

    began = (workspace / f"pid-{freed[0]['generation']}").stat().st_mtime
    assert datetime.fromisoformat(freed[0]["free_at"]).timestamp() > began + 0.3


def ended(worker: Process, *, is_told: bool = False) -> dict[str, Any]:
    """Return the report of a worker that a signal ends."""
    if not is_told:
        worker.send_signal(signal.SIGTERM)
    stdout, _ = worker.communicate(timeout=60)
    answer = json.loads(stdout)
    assert answer["error"]["code"] == "INTERRUPTED"
    data: dict[str, Any] = answer["data"]
    return data


def stop(worker: Process, workspace: Path) -> None:
    """Where it has no lock of the store, which nobody else could use meanwhile."""
    lock = make_lock(workspace / ".tool" / ".state.db.lock")
    while True:
        os.kill(worker.pid, signal.SIGSTOP)
        assert wait_until_stopped(worker.pid)
        try:
            with lock.exclusively(0):
                return
        except LockTimeout:
            os.kill(worker.pid, signal.SIGCONT)


def end_lease(tool: Tool, claim: str) -> None:
    """As if its time had passed; who has claimed it does not hear of it."""
    assert tool("task", "renew", claim, "--lease", "1ms").status == 0


def lines_until(worker: Process, text: bytes, times: int) -> list[bytes]:
    """Of its stderr, to the one that has the text for so many times."""
    assert worker.stderr is not None
    lines: list[bytes] = []
    while sum(text in line for line in lines) < times:
        lines.append(worker.stderr.readline())
        assert lines[-1], f"the process ended, and wrote {lines}"
    return lines


def statuses(tool: Tool) -> list[str]:
    return [task["status"] for task in tool("task", "list", "mail").data["tasks"]]
