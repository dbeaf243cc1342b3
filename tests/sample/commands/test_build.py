"""tool build"""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.safety.processes import started
from sampletool.kit.testing.console import on_terminal
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import COMMAND, Ran, Tool
from tests.sample.support import PATIENCE_SECONDS, are_gone, at_work, pid_in, pids_in, together, wait_until


@pytest.fixture
def demo(tool: Tool) -> Path:
    """What `tool init` makes."""
    assert tool("init").status == 0
    return tool.cwd


def declare(tool: Tool, text: str) -> None:
    (tool.cwd / "tool.toml").write_text(text)


def target(name: str, script: str, *, needs: str = "", inputs: str = "", output: str = "x") -> str:
    return (
        f"[target.{name}]\nrun = ['/bin/sh', '-c', '''{script}''']\noutputs = ['{output}']\n"
        f"needs = [{needs}]\ninputs = [{inputs}]\n"
    )


def statuses(data: Any) -> dict[str, str]:
    return {entry["name"]: entry["status"] for entry in data["targets"]}


def reason(ran: Ran, name: str) -> str:
    return str(next(entry.get("reason") for entry in ran.data["targets"] if entry["name"] == name))


def test_the_first_build_builds_all_and_the_second_nothing(tool: Tool, demo: Path) -> None:
    assert statuses(tool("build").data) == {"totals": "built", "report": "built"}
    assert (demo / "out" / "report" / "report.txt").read_text().startswith("east")

    again = tool("build").data
    assert (again["effect"], statuses(again)) == ("unchanged", {"totals": "up_to_date", "report": "up_to_date"})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("input", "the input data/sales.csv changed"),
        ("command", "its command changed"),
        ("new input", "the input data/more.csv is new"),
        ("output", "the output totals.json was changed"),
        ("link", "out/totals does not lead to the last build"),
    ],
)
def test_what_is_stale_is_built_again_and_the_answer_says_why(tool: Tool, demo: Path, change: str, why: str) -> None:
    toml = demo / "tool.toml"
    toml.write_text(toml.read_text().replace('"data/sales.csv"]', '"data/*.csv"]', 1))
    tool("build")
    if change == "input":
        with (demo / "data" / "sales.csv").open("a") as file:
            file.write("2026-03-01,north,apples,1,1\n")
    elif change == "new input":
        (demo / "data" / "more.csv").touch()
    elif change == "output":
        (demo / "out" / "totals" / "totals.json").chmod(0o644)
        os.truncate(demo / "out" / "totals" / "totals.json", 0)
    elif change == "link":
        (demo / "out" / "totals").unlink()
    else:
        toml.write_text(toml.read_text().replace('["python3", "scripts/totals', '["python3", "-B", "scripts/totals'))

    forecast, ran = tool("build", "--dry-run"), tool("build")

    assert reason(ran, "totals") == reason(forecast, "totals") == why
    assert statuses(ran.data)["totals"] == "built"
    assert json.loads((demo / "out" / "totals" / "totals.json").read_text())


def test_touching_a_file_without_changing_it_builds_nothing(tool: Tool, demo: Path) -> None:
    tool("build")
    os.utime(demo / "data" / "sales.csv")

    assert tool("build").data["effect"] == "unchanged"


def test_a_dry_run_makes_nothing(tool: Tool, demo: Path) -> None:
    before = sorted(demo.rglob("*"))

    ran = tool("build", "--dry-run")

    assert statuses(ran.data) == {"totals": "stale", "report": "stale"}
    assert ran.meta["dry_run"] is True
    assert sorted(demo.rglob("*")) == before


def test_a_target_sees_what_it_declared_and_nothing_else(tool: Tool) -> None:
    (tool.cwd / "declared").write_text("yes")
    (tool.cwd / "undeclared").write_text("no")
    script = "cat declared; test ! -e undeclared; env | sort > x; ls >> x; pwd >> x"
    declare(tool, target("a", script, inputs="'declared'"))

    ran = tool("build", "--session-id", "s-1", OF_THE_CALLER="yes")

    seen = (tool.cwd / "out" / "a" / "x").read_text()
    assert statuses(ran.data) == {"a": "built"}
    assert f"TOOL_WORKSPACE={tool.cwd}" in seen
    assert "TOOL_SESSION_ID=s-1" in seen
    assert "OF_THE_CALLER" not in seen
    assert f"{tool.cwd}/.tool/tmp/s-1." in seen


def test_outputs_of_what_it_needs_are_there_and_what_it_did_not_declare_goes(tool: Tool) -> None:
    declare(
        tool,
        target("a", "echo one > x; echo junk > junk")
        + target("b", "cat out/a/x > y; test ! -e out/a/junk", needs="'a'", output="y"),
    )

    assert statuses(tool("build", "b").data) == {"a": "built", "b": "built"}
    assert (tool.cwd / "out" / "b" / "y").read_text() == "one\n"
    assert os.listdir(tool.cwd / "out" / "a") == ["x"]


def test_a_failure_skips_what_needs_it_and_nothing_else(tool: Tool) -> None:
    declare(
        tool,
        target("bad", "echo why; exit 7")
        + target("above", "cp out/bad/x x", needs="'bad'")
        + target("top", "cp out/above/x x", needs="'above'")
        + target("good", "echo > x"),
    )

    ran = tool("build")

    assert (ran.status, ran.code) == (3, "BUILD_FAILED")
    data = ran.answer["data"]
    assert statuses(data) == {"bad": "failed", "above": "skipped", "top": "skipped", "good": "built"}
    bad = data["targets"][0]
    assert (bad["exit_status"], bad["tail"]) == (7, "why\n")
    assert Path(bad["log"]).read_text() == "why\n"
    assert bad["log"].startswith(tool.environ["TMPDIR"])


def test_a_failed_build_leaves_the_last_good_outputs_and_the_next_goes_on(tool: Tool) -> None:
    declare(tool, target("a", "echo one > x") + target("b", "cp in x", inputs="'in'"))
    (tool.cwd / "in").write_text("good")
    tool("build")
    declare(tool, target("a", "echo two > x") + target("b", "cp in x; exit 1", inputs="'in'"))

    assert statuses(tool("build").answer["data"]) == {"a": "built", "b": "failed"}
    assert (tool.cwd / "out" / "b" / "x").read_text() == "good"
    declare(tool, target("a", "echo two > x") + target("b", "cp in x; true", inputs="'in'"))
    assert statuses(tool("build").data) == {"a": "up_to_date", "b": "built"}


@pytest.mark.parametrize(
    ("script", "note"),
    [("true", "did not write its output 'x'"), ("ln -s /etc/passwd x", "is a link"),
     ("mkdir x; ln -s /etc x/y", "is a link")],
)  # fmt: skip
def test_an_output_that_is_missing_or_leads_away_is_a_failure(tool: Tool, script: str, note: str) -> None:
    declare(tool, target("a", script))

    ran = tool("build")

    assert note in ran.answer["data"]["targets"][0]["note"]
    assert not (tool.cwd / "out" / "a").exists()


def test_a_program_that_is_not_there_is_a_failed_target(tool: Tool) -> None:
    declare(tool, "[target.a]\nrun = ['no-such-program']\noutputs = ['x']\n" + target("b", "echo > x"))

    assert statuses(tool("build").answer["data"]) == {"a": "failed", "b": "built"}


def test_all_that_hinders_is_told_before_anything_runs(tool: Tool) -> None:
    declare(tool, target("a", "echo > x", inputs="'missing'") + target("b", "echo > x") + target("c", "echo > x"))
    (tool.cwd / "out" / "b").mkdir(parents=True)

    ran = tool("build")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert [error["param"] for error in ran.error["errors"]] == ["target.a", "target.b"]
    assert not (tool.cwd / "out" / "c").exists()


def test_a_person_sees_each_problem_of_tool_toml_on_a_line_of_its_own(tool: Tool) -> None:
    declare(tool, "[target.a]\nrun = ['true']\n[check.b]\nneeds = ['c']\n")

    ran = tool("build", "--format", "text")

    assert ran.stdout == b""
    assert ran.stderr.decode().splitlines() == [
        f"Error: {tool.cwd}/tool.toml has 3 problems; nothing was run. [VALIDATION_ERROR]",
        "line 1, target.a: outputs is missing: the files that the command writes",
        "line 3, check.b: run is missing: the command as a list, such as ['python3', 'make.py']",
        "line 3, check.b: it needs 'c', which is no target",
        "Correct all of them and run it again.",
    ]


def test_a_misspelt_target_and_a_missing_workspace_are_told(tool: Tool, demo: Path) -> None:
    ran = tool("build", "reprot")
    assert (ran.status, ran.code) == (5, "TARGET_NOT_FOUND")
    assert "'report'" in ran.error["suggestion"]

    (demo / "tool.toml").unlink()
    assert (tool("build").status, tool("build").code) == (4, "NO_WORKSPACE")


def test_all_settings_that_are_wrong_are_told_before_anything_runs(tool: Tool) -> None:
    wrong = ["jobs", "lock_timeout"]
    settings = "".join(f'{name} = "banana"\n' for name in wrong)
    declare(tool, f"[settings]\n{settings}" + target("a", f"touch {tool.cwd}/ran; echo > x"))

    for command in (("build",), ("build", "--dry-run"), ("test",), ("test", "--build"), ("test", "--dry-run")):
        ran = tool(*command)
        assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
        assert [error["param"] for error in ran.error["errors"]] == wrong

    assert not (tool.cwd / "ran").exists()
    assert not (tool.cwd / ".tool" / "locks").exists()


def test_of_two_builds_one_works_and_the_other_is_told_by_whom_it_is_kept_out(tool: Tool) -> None:
    declare(tool, target("a", "touch started; sleep 30; echo > x"))
    slow = tool.start("build", "--session-id", "slow")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/slow.*/*/a/started")))

    ran = tool("build")

    assert (ran.status, ran.code) == (75, "LOCK_HELD")
    holder = ran.error["context"]["holder"]
    assert (holder["pid"], holder["command"], holder["session_id"], holder["state"]) == (
        slow.pid,
        "build",
        "slow",
        "running",
    )
    assert f"Another build is running (pid {slow.pid}" in ran.error["message"]
    tested = tool("test")
    assert tested.error["context"]["holder"]["pid"] == slow.pid
    limited = tool("build", "--timeout", "300ms", "--lock-timeout", "30s")
    assert (limited.status, limited.code, limited.error["context"]["timeout_ms"]) == (10, "TIMEOUT", 300)
    assert tool("lock", "list").data["locks"][0]["holders"][0]["pid"] == slow.pid
    assert tool("lock", "release", "build").code == "LOCK_HELD"
    slow.terminate()
    slow.communicate(timeout=PATIENCE_SECONDS)


def test_with_patience_two_builds_succeed_in_turn(tool: Tool) -> None:
    declare(tool, target("a", "sleep 0.3; echo > x"))

    results = tool.together([["build", "--lock-timeout", "30s"]] * 2)

    assert [ran.status for ran in results] == [0, 0]
    assert sorted(statuses(ran.data)["a"] for ran in results) == ["built", "up_to_date"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_any_two_targets_leaves_no_process_and_no_half_output(
    tool: Tool, number: signal.Signals
) -> None:
    declare(tool, "".join(target(f"t{n}", f"echo a > x; {at_work(str(n))}; echo b >> x") for n in range(6)))
    for turn in range(scale(4, 40)):
        for left in [*tool.cwd.glob("go*"), *tool.cwd.glob("out/*"), *tool.cwd.glob("pids")]:
            left.unlink()
        let_go = turn % 5
        for n in range(let_go):
            (tool.cwd / f"go{n}").touch()
        process = tool.start("build", "--jobs", "2")
        wait_until(lambda wanted=let_go: len(pids_in(tool.cwd / "pids")) > wanted)  # type: ignore[misc]

        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)

        ran = Ran(process.returncode, stdout, stderr)
        assert (ran.status, ran.code) == (-number, "INTERRUPTED"), (turn, ran)
        assert are_gone(pids_in(tool.cwd / "pids"))
        for path in tool.cwd.glob("out/*/x"):
            assert path.read_text() == "a\nb\n"
    for n in range(6):
        (tool.cwd / f"go{n}").touch()
    ran = tool("build", "--lock-timeout", "0")
    assert ran.status == 0
    assert os.listdir(tool.cwd / ".tool" / "tmp") == []


def test_an_interrupted_build_tells_what_it_had_done(tool: Tool) -> None:
    declare(tool, target("a", "echo > x") + target("b", "sleep 30; echo > x", needs="'a'"))
    process = tool.start("build")
    wait_until(lambda: (tool.cwd / "out" / "a" / "x").exists() and list(tool.cwd.glob(".tool/tmp/*/*/b")))
    process.terminate()
    stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)

    ran = Ran(process.returncode, stdout, stderr)
    assert (ran.status, ran.code) == (-signal.SIGTERM, "INTERRUPTED")
    assert ran.answer["data"] is not None
    assert statuses(ran.answer["data"]) == {"a": "built", "b": "stopped"}


def test_the_end_of_timeout_ends_children_as_a_signal_does(tool: Tool) -> None:
    declare(tool, target("a", f"{at_work()}; echo > x"))

    ran = tool("build", "--timeout", "2s")

    assert (ran.status, ran.code) == (10, "TIMEOUT")
    assert are_gone(pids_in(tool.cwd / "pids"))


def test_kill_9_with_a_living_child_is_reported_as_an_orphan_and_can_be_cleared(tool: Tool) -> None:
    declare(tool, target("a", "echo $$ > pid; echo half > x; sleep 40; echo done > x"))
    process = tool.start("build")
    pid_file = wait_until(lambda: [p for p in tool.cwd.glob(".tool/tmp/*/*/a/pid") if p.read_text()])[0]
    orphan = int(pid_file.read_text())
    process.kill()
    process.communicate()

    held = tool("lock", "list").data["locks"][0]["holders"][0]
    assert (held["state"], held["pid"]) == ("orphaned", process.pid)
    assert orphan in held["children"]
    refused = tool("build")
    assert refused.code == "LOCK_HELD"
    assert "has ended" in refused.error["message"]
    assert refused.error["suggestion"].endswith("; --force-unlock only helps if its process is dead.")
    assert not (tool.cwd / "out" / "a").exists(), "an orphan can never publish"

    declare(tool, target("a", "echo done > x"))
    cleared = tool("build", "--force-unlock")

    assert statuses(cleared.data) == {"a": "built"}
    assert cleared.meta["recovered_from"]["pid"] == process.pid
    assert {warning["code"] for warning in cleared.answer["warnings"]} == {"ORPHAN_ENDED"}
    assert started(orphan) is None
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


def test_kill_9_between_any_two_targets_corrupts_nothing(tool: Tool) -> None:
    declare(tool, "".join(target(f"t{n}", f"echo {n} > x") for n in range(8)))
    for turn in range(scale(5, 60)):
        for link in (tool.cwd / "out").glob("t*"):
            link.unlink()
        process = tool.start("build", "--jobs", "2", "--lock-timeout", "60s")
        wait_until(lambda wanted=turn % 8: len([*tool.cwd.glob("out/t*")]) >= wanted)  # type: ignore[misc]
        process.kill()
        process.communicate()
        for path in tool.cwd.glob("out/*/x"):
            assert path.read_text() == f"{path.parent.name[1:]}\n"

    ran = tool("build", "--lock-timeout", "60s")
    assert ran.status == 0
    assert {path.parent.name for path in tool.cwd.glob("out/*/x")} == {f"t{n}" for n in range(8)}


def test_a_nested_call_does_not_wait_for_itself(tool: Tool) -> None:
    import sys

    python = f"PYTHONPATH={tool.environ['PYTHONPATH']} {sys.executable}"
    declare(tool, target("a", f'{python} -m sampletool -C "$TOOL_WORKSPACE" build > x; true'))

    tool("build", "--timeout", "20s")

    assert json.loads((tool.cwd / "out" / "a" / "x").read_text())["error"]["code"] == "NESTED_CALL"


def test_json_lines_tell_each_target_and_end_with_the_answer(tool: Tool, demo: Path) -> None:
    ran = tool("build", "--format", "jsonl")

    *events, answer = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [event["event"] for event in events if event["event"] != "heartbeat"] == [
        "target_started",
        "target_done",
    ] * 2
    done = [event for event in events if event["event"] == "target_done"]
    assert [event["target"]["name"] for event in done] == ["totals", "report"]
    assert all(event["seconds"] > 0 for event in done)
    assert answer["ok"]


def test_targets_run_in_parallel_up_to_jobs(tool: Tool) -> None:
    declare(tool, "".join(target(f"t{n}", f"{together(3)}; echo > x") for n in range(3)))
    all_at_once = tool("build", "--jobs", "3", "--timeout", "40s")

    alone = "mkdir $TOOL_WORKSPACE/alone && sleep 0.1 && rmdir $TOOL_WORKSPACE/alone && echo > x"
    declare(tool, "".join(target(f"t{n}", alone) for n in range(3)))
    one_by_one = tool("build", "--jobs", "1")

    assert set(statuses(all_at_once.data).values()) == set(statuses(one_by_one.data).values()) == {"built"}


def test_a_target_is_stale_when_what_it_needs_came_out_differently(tool: Tool) -> None:
    declare(tool, target("a", "date +%N > x") + target("b", "cp out/a/x x", needs="'a'"))
    tool("build")
    (tool.cwd / "out" / "a" / "x").unlink()

    tool("build", "a")
    ran = tool("build")

    assert statuses(ran.data) == {"a": "up_to_date", "b": "built"}
    assert (tool.cwd / "out" / "b" / "x").read_text() == (tool.cwd / "out" / "a" / "x").read_text()


def test_a_target_is_not_built_when_what_it_needs_came_out_the_same(tool: Tool) -> None:
    declare(
        tool,
        target("a", "sort in > x", inputs="'in'")
        + target("b", "cp out/a/x x", needs="'a'")
        + target("c", "cp out/b/x x", needs="'b'")
        + target("d", "cat out/a/x extra > x", needs="'a'", inputs="'extra'"),
    )
    (tool.cwd / "in").write_text("1\n2\n")
    (tool.cwd / "extra").write_text("one")
    tool("build")
    (tool.cwd / "in").write_text("2\n1\n")
    (tool.cwd / "extra").write_text("two")

    ran = tool("build")

    assert statuses(ran.data) == {"a": "built", "b": "up_to_date", "c": "up_to_date", "d": "built"}
    assert set(statuses(tool("build").data).values()) == {"up_to_date"}


def test_an_input_that_changes_while_it_is_read_is_not_believed(tool: Tool) -> None:
    (tool.cwd / "in").write_text("AAAA")
    declare(tool, target("a", "touch started; while ! test -e \"$TOOL_WORKSPACE/go\"; do sleep 0.02; done; cp in x",
                         inputs="'in'"))  # fmt: skip
    process = tool.start("build")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/*/*/a/started")))
    (tool.cwd / "in").write_text("BBBB")
    (tool.cwd / "go").touch()
    stdout, _ = process.communicate(timeout=PATIENCE_SECONDS)
    (tool.cwd / "in").write_text("AAAA")

    assert "changed while it ran" in json.loads(stdout)["data"]["targets"][0]["note"]
    assert statuses(tool("build").data) == {"a": "built"}
    assert (tool.cwd / "out" / "a" / "x").read_text() == "AAAA"
    assert statuses(tool("build").data) == {"a": "up_to_date"}


def test_what_is_needed_is_not_believed_either_if_it_was_changed_meanwhile(tool: Tool) -> None:
    declare(
        tool,
        target("a", "echo good > x")
        + target("b", 'touch started; while ! test -e "$TOOL_WORKSPACE/go"; do sleep 0.02; done; cat out/a/x in > x',
                 needs="'a'", inputs="'in'"),
    )  # fmt: skip
    (tool.cwd / "in").write_text("one")
    process = tool.start("build")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/*/*/b/started")))
    output = tool.cwd / "out" / "a" / "x"
    output.chmod(0o644)
    output.write_text("")
    (tool.cwd / "go").touch()
    process.communicate(timeout=PATIENCE_SECONDS)

    tool("build", "a")
    tool("build")

    assert (tool.cwd / "out" / "b" / "x").read_text() == "good\none"


def test_an_input_whose_directory_was_exchanged_meanwhile_is_not_believed(tool: Tool) -> None:
    for version in ("one", "two"):
        (tool.cwd / version).mkdir()
        (tool.cwd / version / "in").write_text(version)
    (tool.cwd / "now").symlink_to("one")
    wait = 'touch started; while ! test -e "$TOOL_WORKSPACE/go"; do sleep 0.02; done'
    declare(tool, target("a", f"{wait}; cat now/in > x", inputs="'now/in'"))
    process = tool.start("build")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/*/*/a/started")))
    for version in ("two", "one"):
        (tool.cwd / "now").unlink()
        (tool.cwd / "now").symlink_to(version)
        if version == "two":
            (tool.cwd / "go").touch()
            process.communicate(timeout=PATIENCE_SECONDS)

    tool("build")

    assert (tool.cwd / "out" / "a" / "x").read_text() == "one"


def test_the_end_of_timeout_also_ends_reading_a_large_input(tool: Tool) -> None:
    with (tool.cwd / "large").open("w") as file:
        file.truncate(20 * 1024**3)
    declare(tool, target("a", "echo > x", inputs="'large'"))

    ran = tool("build", "--timeout", "300ms")

    assert (ran.status, ran.code) == (10, "TIMEOUT")


def test_outputs_that_cannot_be_kept_are_a_failed_target_and_the_others_are_built(tool: Tool) -> None:
    (tool.cwd / "out").mkdir()
    declare(
        tool,
        target("a", "rm -rf $TOOL_WORKSPACE/out/a; mkdir $TOOL_WORKSPACE/out/a; echo > x") + target("b", "echo > x"),
    )

    ran = tool("build")

    assert statuses(ran.answer["data"]) == {"a": "failed", "b": "built"}
    assert "could not be kept" in ran.answer["data"]["targets"][0]["note"]


def test_what_a_command_made_read_only_goes_with_its_scratch_directory(tool: Tool) -> None:
    declare(tool, target("a", "mkdir -p cache/deep; touch cache/deep/file; chmod -R a-w cache; echo > x"))

    assert tool("build").status == 0
    assert list(tool.cwd.glob(".tool/tmp/*")) == []


def test_a_fifo_among_the_outputs_is_a_failure_and_no_wait(tool: Tool) -> None:
    declare(tool, target("a", "mkdir x; mkfifo x/p"))

    ran = tool("build", "--timeout", "20s")

    assert "not a regular file" in ran.answer["data"]["targets"][0]["note"]


def test_a_reader_of_events_that_does_not_read_does_not_keep_the_lock(tool: Tool) -> None:
    declare(tool, "".join(target(f"t{n}", "head -c 6000 /dev/zero | tr '\\0' x; echo > x") for n in range(40)))
    process = tool.start("build", "--format", "jsonl", "--timeout", "2s")
    wait_until(lambda: tool("lock", "list").data["locks"] == [] and list(tool.cwd.glob("out/*/x")))

    assert tool("build", "--lock-timeout", "5s").status == 0
    process.kill()
    process.communicate()


def test_a_full_disk_behind_the_events_is_told_once(tool: Tool, demo: Path) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [*COMMAND, "build", "--format", "jsonl"], cwd=demo, env=tool.environ, stdout=full, stderr=subprocess.PIPE
        )

    assert (ran.returncode, len(ran.stderr.splitlines())) == (1, 1)


def test_an_extra_file_in_an_output_directory_is_noticed(tool: Tool) -> None:
    declare(tool, target("a", "mkdir x; echo > x/one"))
    tool("build")
    (tool.cwd / "out" / "a" / "x" / "two").touch()

    assert reason(tool("build"), "a") == "its outputs have a file more or less than were built"


@pytest.mark.parametrize(
    "text",
    [
        "[target.a]\nrun=['true']\noutputs=['d','d/f']\n",
        "[target.a]\nrun=['true']\noutputs=['o','o']\n",
        "[target.a]\nrun=['true']\noutputs=['o/']\n",
        '[target.a]\nrun=["a\\u0000b"]\noutputs=["o"]\n',
        "[target.a]\nrun=['true']\ninputs=['tool.toml']\noutputs=['tool.toml']\n",
        "target = 5\n[check.c]\nrun=['true']\nneeds=['b']\n",
    ],
)
def test_odd_declarations_are_told_before_anything_runs(tool: Tool, text: str) -> None:
    declare(tool, text)

    assert tool("build").code == "VALIDATION_ERROR"


def test_a_grandchild_that_left_its_group_is_ended_and_told(tool: Tool) -> None:
    stray = 'setsid sh -c "echo \\$\\$ > $TOOL_WORKSPACE/pid; exec sleep 60" &'
    stray += ' until test -s "$TOOL_WORKSPACE/pid"; do sleep 0.02; done'
    declare(tool, f"[check.c]\nrun = ['/bin/sh', '-c', '''{stray}''']\n")

    ran = tool("test")

    pid = pid_in(tool.cwd / "pid")
    assert [warning["code"] for warning in ran.answer["warnings"]] == ["STRAY_ENDED"]
    assert str(pid) in ran.answer["warnings"][0]["message"]
    assert started(pid) is None
    assert tool("build").status == 0


def test_that_an_output_can_be_executed_is_part_of_what_it_is(tool: Tool) -> None:
    (tool.cwd / "in").write_text("x")
    needy = "test -x out/a/x && echo yes > x || echo no > x"
    declare(
        tool, target("a", "touch x; test -s in && chmod +x x; true", inputs="'in'") + target("b", needy, needs="'a'")
    )
    tool("build")
    (tool.cwd / "in").write_text("")

    ran = tool("build")

    assert statuses(ran.data) == {"a": "built", "b": "built"}
    assert (tool.cwd / "out" / "b" / "x").read_text() == "no\n"


def test_an_empty_directory_that_is_gone_is_made_again(tool: Tool) -> None:
    declare(tool, target("a", "mkdir x"))
    tool("build")
    (tool.cwd / "out" / "a" / "x").rmdir()

    assert reason(tool("build"), "a") == "the output x is missing"
    assert (tool.cwd / "out" / "a" / "x").is_dir()


def test_a_file_that_was_put_beside_the_outputs_has_them_built_again(tool: Tool) -> None:
    meddling = target("b", "touch out/a/extra x", needs="'a'")
    declare(tool, target("a", "touch x") + meddling + target("c", "ls out/a > x", needs="'a', 'b'"))

    ran = tool("build")

    assert [told.get("note", "")[:22] for told in ran.data["targets"]] == ["", *["what it needs of a chan"[:22]] * 2]
    assert reason(tool("build", "--dry-run"), "a") == "its outputs have a file more or less than were built"


def test_memory_is_in_proportion_to_what_is_there(tool: Tool, demo: Path) -> None:
    """A journal of some hundred bytes needs no gigabyte, wherever the limit of its size is."""
    tool("build")

    for command in (["build"], ["build", "--dry-run"], ["test"]):
        limited = ["sh", "-c", 'ulimit -v 400000; exec "$@"', "-", *COMMAND, *command]
        ran = subprocess.run(limited, cwd=demo, env=tool.environ, capture_output=True, stdin=subprocess.DEVNULL)

        assert json.loads(ran.stdout).get("error") is None
        assert ran.returncode == 0


def test_a_command_sees_the_variables_of_the_caller(tool: Tool) -> None:
    declare(tool, target("a", "env > x"))

    tool("build", "--session-id", "s-1", TOOL_STORE="memory:", TOOL_TRACE_ID="t-1", TOOL_JOBS="3")

    seen = (tool.cwd / "out" / "a" / "x").read_text().splitlines()
    assert {"TOOL_TRACE_ID=t-1", "TOOL_JOBS=3", "TOOL_SESSION_ID=s-1", "TOOL_STORE=memory:"} <= set(seen)
    assert tool("build", TOOL_TRACE_ID="t-2").data["effect"] == "unchanged"


def read_lines(process: "subprocess.Popen[bytes]", count: int) -> list[Any]:
    """The first lines of JSON that it prints."""
    assert process.stdout is not None
    content, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while content.count(b"\n") < count:
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert readable, f"only this came: {content!r}"
        content += os.read(process.stdout.fileno(), 65536)
    return [json.loads(line) for line in content.splitlines()[:count]]


def test_silence_is_filled_by_heartbeats_that_name_what_runs(tool: Tool) -> None:
    declare(tool, target("a", 'while ! test -e "$TOOL_WORKSPACE/go"; do sleep 0.02; done; echo > x'))
    process = tool.start("build", "--format", "jsonl")

    events = read_lines(process, 3)
    (tool.cwd / "go").touch()
    *_, last = process.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()

    assert [event["event"] for event in events] == ["target_started", "heartbeat", "heartbeat"]
    assert events[1]["running"] == ["a"]
    assert json.loads(last)["ok"]


def test_a_person_sees_each_target_start_and_end_with_its_seconds_and_what_runs_now(tool: Tool, demo: Path) -> None:
    ours, theirs = os.openpty()
    environ = tool.environ | {"TERM": "xterm"}
    process = subprocess.Popen(
        [*COMMAND, "build"], cwd=demo, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    process.communicate(timeout=PATIENCE_SECONDS)
    shown = b""
    with contextlib.suppress(OSError):
        while block := os.read(ours, 65536):
            shown += block
    os.close(ours)

    text = shown.decode()
    assert re.search(
        r"totals: started.*totals: built in \d+\.\d s.*report: started.*report: built in \d+\.\d s", text, re.S
    )
    assert re.search(r"build \[#* *\] +\d+% totals \d+ s", text)


def test_what_runs_now_is_shown_as_soon_as_it_runs(tool: Tool) -> None:
    declare(tool, "".join(target(f"t{n}", f"{at_work()}; echo > x") for n in range(6)))
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, "build", "--jobs", "6"],
        cwd=tool.cwd,
        env=tool.environ | {"TERM": "xterm", "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)

    shown = bytearray()
    while not re.search(rb"t5 \d+ s", shown):
        assert select.select([ours], [], [], PATIENCE_SECONDS)[0], f"only this came: {shown!r}"
        shown += os.read(ours, 65536)
    assert re.search(rb"build \[ *\] +0% t0 \d+ s, t1 \d+ s, t2 \d+ s, t3 \d+ s, t4 \d+ s, t5", shown)
    (tool.cwd / "go").touch()
    process.wait(timeout=PATIENCE_SECONDS)
    os.close(ours)


def test_a_person_sees_the_end_of_what_a_failed_target_wrote_and_where_all_of_it_is(tool: Tool) -> None:
    declare(tool, target("a", "seq 20; echo no such library; exit 3"))

    seen = on_terminal([*COMMAND, "build"], tool.cwd, tool.environ | {"TERM": "dumb"}).splitlines()

    assert seen[:2] == ["a: failed (it was not built before)", "    exit status 3"]
    assert seen[2:-1] == [f"    {n}" for n in range(12, 21)] + ["    no such library"]
    assert Path(seen[-1].removeprefix("    all of it: ")).read_text().startswith("1\n2\n")


def test_lines_about_targets_are_for_a_terminal_or_for_who_asks(tool: Tool, demo: Path) -> None:
    assert tool("build").stderr == b""
    (demo / "out" / "totals").unlink()

    assert b"totals: built in " in tool("build", "--verbose").stderr


def test_data_have_no_durations(tool: Tool, demo: Path) -> None:
    assert "seconds" not in json.dumps(tool("build").data)


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$"])
def test_a_failure_is_one_also_where_the_parent_ignores_the_end_of_children(tool: Tool, script: str) -> None:
    declare(tool, target("a", f"echo > x; {script}"))
    ignoring = ["bash", "-c", 'trap "" CHLD; exec "$@"', "-", *COMMAND, "build"]

    ran = subprocess.run(ignoring, cwd=tool.cwd, env=tool.environ, capture_output=True, stdin=subprocess.DEVNULL)

    assert json.loads(ran.stdout)["error"]["code"] == "BUILD_FAILED"
    assert not (tool.cwd / "out" / "a").exists()


def test_a_wrong_name_makes_nothing(tool: Tool, demo: Path) -> None:
    before = sorted(demo.rglob("*"))

    assert [tool(command, "nosuch").code for command in ("build", "test")] == ["TARGET_NOT_FOUND"] * 2
    assert sorted(demo.rglob("*")) == before


def test_what_never_ran_is_not_called_stopped(tool: Tool) -> None:
    declare(tool, target("a", "touch started; sleep 30; echo > x") + target("b", "echo > x", needs="'a'"))
    process = tool.start("build")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/*/*/a/started")))
    process.terminate()
    stdout, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert statuses(json.loads(stdout)["data"]) == {"a": "stopped", "b": "not_started"}


def test_the_end_of_the_output_has_no_bytes_that_move_a_cursor(tool: Tool) -> None:
    declare(tool, target("a", "printf 'a\\tb \\033[31mred\\r\\nlast'; exit 1"))

    (failed,) = tool("build").answer["data"]["targets"]

    assert failed["tail"] == "a       b \\x1b[31mred\nlast"


def test_an_input_that_is_gone_makes_its_target_stale(tool: Tool) -> None:
    declare(tool, target("a", "ls *.txt > x", inputs="'*.txt'"))
    for name in ("one.txt", "two.txt"):
        (tool.cwd / name).touch()
    tool("build")
    (tool.cwd / "two.txt").unlink()

    assert reason(tool("build"), "a") == "the input two.txt is gone"


def test_the_next_build_removes_what_a_killed_one_left(tool: Tool, demo: Path) -> None:
    left = demo / ".tool" / "tmp" / "killed" / "targets" / "a"
    tool("build")
    left.mkdir(parents=True)

    tool("build")

    assert os.listdir(demo / ".tool" / "tmp") == []
