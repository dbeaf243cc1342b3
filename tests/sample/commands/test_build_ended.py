"""tool build beside others, and when it is interrupted, killed or out of time."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.safety.processes import is_running
from sampletool.kit.testing.forked import start_python
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import COMMAND, Ran, Tool
from tests.sample.support import (
    PATIENCE_SECONDS,
    TIMES,
    are_gone,
    at_work,
    declare,
    out_of_time,
    pid_in,
    pids_in,
    start,
    statuses,
    target,
    wait_for_pids,
    wait_until,
)


def test_of_two_builds_one_works_and_the_error_of_the_other_names_it(tool: Tool) -> None:
    declare(tool, target("a", "touch started; sleep 30; echo > x"))
    slow = start(tool, "build", "--session-id", "slow")

    ran = tool("build")

    assert (ran.status, ran.code) == (75, "LOCK_HELD")
    holder = ran.error["context"]["holder"]
    assert (holder["pid"], holder["command"], holder["session_id"], holder["state"]) == (
        slow.pid,
        "build",
        "slow",
        "running",
    )
    assert f"is held by `tool build` (process {slow.pid})" in ran.error["message"]
    tested = tool("test")
    assert tested.error["context"]["holder"]["pid"] == slow.pid
    limited = tool("build", "--timeout", "300ms", "--lock-timeout", "30s")
    assert (limited.status, limited.code, limited.error["context"]["timeout_ms"]) == (
        10,
        "TIMEOUT",
        300,
    )
    assert tool("lock", "list").data["locks"][0]["holders"][0]["pid"] == slow.pid
    assert tool("lock", "release", "build").code == "LOCK_HELD"
    slow.terminate()
    slow.communicate(timeout=PATIENCE_SECONDS)


def test_a_build_whose_log_cannot_be_written_says_what_it_has_built(tool: Tool) -> None:
    """As on a full disk."""
    enter_logs = 'cd "$TMPDIR"/*/"$TOOL_SESSION_ID"/logs-*'
    spoil = f"{enter_logs}; mkdir target-b.log; echo something; exec sleep 600"
    declare(tool, target("a", "echo something; echo > x") + target("b", spoil, needs="'a'"))

    ran = tool("build")

    assert ran.code == "UNSAFE_PATH"
    assert statuses(ran.response["data"]) == {"a": "built", "b": "stopped"}
    assert statuses(tool("build", "--dry-run").data) == {"a": "up_to_date", "b": "stale"}


def test_with_patience_two_builds_succeed_in_turn(tool: Tool) -> None:
    declare(tool, target("a", "sleep 0.3; echo > x"))

    results = tool.together([["build", "--lock-timeout", "30s"]] * 2)

    assert [ran.status for ran in results] == [0, 0]
    assert sorted(statuses(ran.data)["a"] for ran in results) == ["built", "up_to_date"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_any_two_targets_leaves_no_process_and_no_half_output(
    tool: Tool, number: signal.Signals
) -> None:
    declare(
        tool,
        "".join(target(f"t{n}", f"echo a > x; {at_work(str(n))}; echo b >> x") for n in range(6)),
    )
    for turn in range(scale(4, 40)):
        for left in [*tool.cwd.glob("go*"), *tool.cwd.glob("out/*"), *tool.cwd.glob("pids")]:
            left.unlink()
        let_go = turn % 5
        for n in range(let_go):
            (tool.cwd / f"go{n}").touch()
        process = tool.start("build", "--jobs", "2")
        wait_for_pids(tool.cwd / "pids", let_go + 1)

        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)

        ran = Ran(process.wait(), stdout, stderr)
        assert (ran.status, ran.code) == (-number, "INTERRUPTED"), (turn, ran)
        assert are_gone(pids_in(tool.cwd / "pids"))
        for path in tool.cwd.glob("out/*/x"):
            assert path.read_text() == "a\nb\n"
    for n in range(6):
        (tool.cwd / f"go{n}").touch()
    ran = tool("build", "--lock-timeout", "0")
    assert ran.status == 0
    assert os.listdir(tool.cwd / ".tool" / "tmp") == []


def test_an_interrupted_build_tells_what_it_had_done_and_what_never_ran(tool: Tool) -> None:
    slow = target("b", "touch started; sleep 30; echo > x", needs="'a'")
    declare(tool, target("a", "echo > x") + slow + target("c", "echo > x", needs="'b'"))
    process = start(tool, "build", name="b")
    process.terminate()

    ran = Ran(process.wait(), *process.communicate(timeout=PATIENCE_SECONDS))
    assert (ran.status, ran.code) == (-signal.SIGTERM, "INTERRUPTED")
    assert statuses(ran.response["data"]) == {"a": "built", "b": "stopped", "c": "not_started"}


def test_the_end_of_timeout_ends_children_as_a_signal_does(tool: Tool) -> None:
    declare(tool, target("a", f"{at_work()}; echo > x"))

    ran = out_of_time(tool, "build")

    assert (ran.status, ran.code) == (10, "TIMEOUT")
    assert are_gone(pids_in(tool.cwd / "pids"))


@pytest.mark.leaves_litter
def test_kill_9_with_a_living_child_is_reported_as_an_orphan_and_can_be_cleared(tool: Tool) -> None:
    declare(tool, target("a", "echo $$ > pid; echo half > x; sleep 40; echo done > x"))
    process = tool.start("build")
    pid_file = wait_until(
        lambda: [p for p in tool.cwd.glob(".tool/tmp/*/*/a/pid") if p.read_text()]
    )[0]
    orphan = int(pid_file.read_text())
    process.kill()
    process.communicate()

    held = tool("lock", "list").data["locks"][0]["holders"][0]
    assert (held["state"], held["pid"]) == ("orphaned", process.pid)
    assert orphan in held["children"]
    refused = tool("build")
    assert refused.code == "LOCK_HELD"
    assert "which has exited" in refused.error["message"]
    assert refused.error["suggestion"].endswith(
        " --force-unlock only helps if the holder has exited."
    )
    assert not (tool.cwd / "out" / "a").exists(), "an orphan can never publish"

    declare(tool, target("a", "echo done > x"))
    cleared = tool("build", "--force-unlock")

    assert statuses(cleared.data) == {"a": "built"}
    assert cleared.meta["recovered_from"]["pid"] == process.pid
    assert {warning["code"] for warning in cleared.response["warnings"]} == {"ORPHAN_ENDED"}
    assert not is_running(orphan)
    assert len(os.listdir(tool.cwd / ".tool" / "tmp")) == 0


def test_force_unlock_harms_no_living_test(tool: Tool) -> None:
    declare(tool, "[check.slow]\nrun = ['/bin/sh', '-c', 'sleep 30']\n")
    living = tool.start("test", "--session-id", "living")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/living.*/checks/slow")))

    ran = tool("build", "--force-unlock", "--lock-timeout", "200ms")

    assert ran.code == "LOCK_HELD"
    assert living.poll() is None
    living.terminate()
    living.communicate(timeout=PATIENCE_SECONDS)


@pytest.mark.leaves_litter
def wait_for_links(directory: Path, count: int) -> None:
    """Wait until the outputs of this many targets are linked."""
    wait_until(lambda: len(list(directory.glob("t*"))) >= count)


def test_kill_9_between_any_two_targets_corrupts_nothing(tool: Tool) -> None:
    declare(tool, "".join(target(f"t{n}", f"echo {n} > x") for n in range(8)))
    for turn in range(scale(5, 60)):
        for link in (tool.cwd / "out").glob("t*"):
            link.unlink()
        process = tool.start("build", "--jobs", "2", "--lock-timeout", "60s")
        wait_for_links(tool.cwd / "out", turn % 8)
        process.kill()
        process.communicate()
        for path in tool.cwd.glob("out/*/x"):
            assert path.read_text() == f"{path.parent.name[1:]}\n"

    ran = tool("build", "--lock-timeout", "60s")
    assert ran.status == 0
    assert {path.parent.name for path in tool.cwd.glob("out/*/x")} == {f"t{n}" for n in range(8)}


def test_a_nested_call_does_not_wait_for_itself(tool: Tool) -> None:

    python = f"PYTHONPATH={tool.environ['PYTHONPATH']} {sys.executable}"
    declare(tool, target("a", f'{python} -m sampletool -C "$TOOL_WORKSPACE" build > x; true'))

    tool("build", "--timeout", "20s")

    assert json.loads((tool.cwd / "out" / "a" / "x").read_text())["error"]["code"] == "NESTED_CALL"


def test_the_end_of_timeout_also_ends_reading_a_large_input(tool: Tool) -> None:
    with (tool.cwd / "large").open("w") as file:
        file.truncate(1024**4)  # no machine reads that while a test waits for it
    declare(tool, target("a", "echo > x", inputs="'large'"))

    ran = tool("build", "--timeout", "150ms")

    assert (ran.status, ran.code) == (10, "TIMEOUT")


def test_a_reader_of_events_that_does_not_read_does_not_keep_the_lock(tool: Tool) -> None:
    declare(
        tool,
        "".join(
            target(f"t{n}", "head -c 6000 /dev/zero | tr '\\0' x; echo > x") for n in range(20)
        ),
    )
    for seconds in TIMES:
        process = tool.start("build", "--format", "jsonl", "--timeout", f"{seconds}s")
        assert process.wait(seconds + PATIENCE_SECONDS) == 10
        assert process.stderr is not None
        if has_waited := b"nothing reads it" in process.stderr.read():
            break
        shutil.rmtree(tool.cwd / "out", ignore_errors=True)

    assert has_waited
    assert tool("build", "--lock-timeout", "5s").status == 0


def test_a_full_disk_behind_the_events_is_reported_once(tool: Tool, totals: Path) -> None:
    with open("/dev/full", "w") as full:
        call = [*COMMAND[1:], "build", "--format", "jsonl"]
        process = start_python(*call, cwd=totals, env=tool.environ, stdout=full.fileno())
        _, stderr = process.communicate(timeout=PATIENCE_SECONDS)

    assert (process.returncode, len(stderr.splitlines())) == (1, 1)


def test_a_grandchild_that_left_its_group_is_ended_and_reported(tool: Tool) -> None:
    stray = 'setsid sh -c "echo \\$\\$ > $TOOL_WORKSPACE/pid; exec sleep 60" &'
    stray += ' until test -s "$TOOL_WORKSPACE/pid"; do sleep 0.02; done'
    declare(tool, f"[check.c]\nrun = ['/bin/sh', '-c', '''{stray}''']\n")

    ran = tool("test")

    pid = pid_in(tool.cwd / "pid")
    assert [warning["code"] for warning in ran.response["warnings"]] == ["STRAY_ENDED"]
    assert str(pid) in ran.response["warnings"][0]["message"]
    assert not is_running(pid)
    assert tool("build").status == 0


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$"])
def test_a_failure_is_one_also_where_the_parent_ignores_the_end_of_children(
    tool: Tool, script: str
) -> None:
    declare(tool, target("a", f"echo > x; {script}"))
    ignoring = ["bash", "-c", 'trap "" CHLD; exec "$@"', "-", *COMMAND, "build"]

    ran = subprocess.run(
        ignoring, cwd=tool.cwd, env=tool.environ, capture_output=True, stdin=subprocess.DEVNULL
    )

    assert json.loads(ran.stdout)["error"]["code"] == "BUILD_FAILED"
    assert not (tool.cwd / "out" / "a").exists()


def test_the_next_build_removes_what_a_killed_one_left(tool: Tool, totals: Path) -> None:
    left = totals / ".tool" / "tmp" / "killed" / "targets" / "a"
    tool("build")
    left.mkdir(parents=True)

    tool("build")

    assert os.listdir(totals / ".tool" / "tmp") == []
