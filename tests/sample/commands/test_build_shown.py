"""What a person, and a program that reads events, sees of tool build."""

import contextlib
import json
import os
import re
import select
from pathlib import Path

from sampletool.kit.testing.console import on_terminal
from sampletool.kit.testing.forked import start_python
from sampletool.kit.testing.tool import COMMAND, Tool
from tests.sample.support import (
    PATIENCE_SECONDS,
    UNTIL_GO,
    at_work,
    declare,
    read_lines,
    target,
)


def test_json_lines_have_each_target_and_end_with_the_response(tool: Tool, totals: Path) -> None:
    ran = tool("build", "--format", "jsonl")

    *events, response = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [event["event"] for event in events if event["event"] != "heartbeat"] == [
        "target_started",
        "target_done",
    ] * 2
    done = [event for event in events if event["event"] == "target_done"]
    assert [event["target"]["name"] for event in done] == ["totals", "report"]
    assert all(event["seconds"] > 0 for event in done)
    assert response["ok"]


def test_silence_is_filled_by_heartbeats_that_name_what_runs(tool: Tool) -> None:
    declare(tool, target("a", f"{UNTIL_GO}; echo > x"))
    process = tool.start("build", "--format", "jsonl")

    events = read_lines(process, 3)
    (tool.cwd / "go").touch()
    *_, last = process.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()

    assert [event["event"] for event in events] == ["target_started", "heartbeat", "heartbeat"]
    assert events[1]["running"] == ["a"]
    assert json.loads(last)["ok"]


def test_a_person_sees_each_target_start_and_end_with_its_seconds_and_what_runs_now(
    tool: Tool, totals: Path
) -> None:
    ours, theirs = os.openpty()
    environ = tool.environ | {"TERM": "xterm"}
    process = start_python(*COMMAND[1:], "build", cwd=totals, env=environ, stderr=theirs)
    os.close(theirs)
    process.communicate(timeout=PATIENCE_SECONDS)
    shown = b""
    with contextlib.suppress(OSError):
        while block := os.read(ours, 65536):
            shown += block
    os.close(ours)

    text = shown.decode()
    assert re.search(
        r"totals: started.*totals: built in \d+\.\d s.*report: started.*report: built in \d+\.\d s",
        text,
        re.S,
    )
    assert re.search(r"build \[#* *\] +\d+% totals \d+ s", text)


def test_running_targets_are_shown_at_once(tool: Tool) -> None:
    declare(tool, "".join(target(f"t{n}", f"{at_work()}; echo > x") for n in range(6)))
    ours, theirs = os.openpty()
    environ = tool.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = start_python(
        *COMMAND[1:], "build", "--jobs", "6", cwd=tool.cwd, env=environ, stderr=theirs
    )
    os.close(theirs)

    shown = bytearray()
    while not re.search(rb"t5 \d+ s", shown):
        assert select.select([ours], [], [], PATIENCE_SECONDS)[0], f"only this came: {shown!r}"
        shown += os.read(ours, 65536)
    assert re.search(
        rb"build \[ *\] +0% t0 \d+ s, t1 \d+ s, t2 \d+ s, t3 \d+ s, t4 \d+ s, t5", shown
    )
    (tool.cwd / "go").touch()
    process.communicate(timeout=PATIENCE_SECONDS)
    os.close(ours)


def test_a_person_sees_the_end_of_what_a_failed_target_wrote_and_where_all_of_it_is(
    tool: Tool,
) -> None:
    declare(tool, target("a", "seq 20; echo no such library; exit 3"))

    seen = on_terminal([*COMMAND, "build"], tool.cwd, tool.environ | {"TERM": "dumb"}).splitlines()

    assert seen[0] == "a: exit code 3"
    assert seen[1:-1] == [f"    {n}" for n in range(12, 21)] + ["    no such library"]
    assert Path(seen[-1].removeprefix("    whole output: ")).read_text().startswith("1\n2\n")


def test_lines_about_targets_are_shown_at_a_terminal_or_with_verbose(
    tool: Tool, totals: Path
) -> None:
    assert tool("build").stderr == b""
    (totals / "out" / "totals").unlink()

    assert b"totals: built in " in tool("build", "--verbose").stderr


def test_control_characters_in_the_tail_are_escaped(tool: Tool) -> None:
    declare(tool, target("a", "printf 'a\\tb \\033[31mred\\r\\nlast'; exit 1"))

    (failed,) = tool("build").response["data"]["targets"]

    assert failed["tail"] == "a       b \\x1b[31mred\nlast"


def test_a_response_with_only_the_end_of_the_output_is_truncated(tool: Tool) -> None:
    declare(tool, target("a", "seq 2000; exit 3"))

    ran = tool("build")

    (failed,) = ran.response["data"]["targets"]
    assert ran.meta["truncated"]
    assert failed["output_bytes"] == Path(failed["log"]).stat().st_size == 8893
    assert len(failed["tail"]) == 4096


def test_a_response_with_all_of_the_output_is_not_truncated(tool: Tool) -> None:
    declare(tool, target("a", "echo why; exit 3"))

    ran = tool("build")

    (failed,) = ran.response["data"]["targets"]
    assert "truncated" not in ran.meta
    assert "output_bytes" not in failed


def test_a_log_without_end_is_cut_and_the_response_says_how_much_is_missing(tool: Tool) -> None:
    declare(tool, target("a", "seq 9000000; exit 3"))

    ran = tool("build")

    (failed,) = ran.response["data"]["targets"]
    assert failed["tail"].endswith("\n9000000\n")
    assert failed["log_missing_bytes"] > 0
    log = Path(failed["log"])
    assert log.stat().st_size < 65 * 1024 * 1024
    notice = f"\n[{failed['log_missing_bytes']} bytes of output are missing here]\n"
    assert notice.encode() in log.read_bytes()
