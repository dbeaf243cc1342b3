"""tool build when something goes wrong around it: it reports what it did, and harms nothing."""

import json
import os
import time
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.testing.console import on_terminal
from sampletool.kit.testing.tool import COMMAND, Process, Tool, ended
from sampletool.kit.testing.waiting import wait_until
from tests.sample.support import UNTIL_GO, declare, reason, statuses, target


def start_with(tool: Tool, before: str, *args: str) -> Process:
    """Start the tool in a process that first runs other code."""
    run = f"import runpy; runpy.run_module({PACKAGE!r}, run_name='__main__', alter_sys=True)"
    return tool.start(*args, program=["-c", f"{before}\n{run}"])


def test_a_journal_that_cannot_be_flushed_at_the_end_does_not_hide_what_was_built(
    tool: Tool,
) -> None:
    spoil = "rm $TOOL_WORKSPACE/.tool/built.jsonl; mkdir $TOOL_WORKSPACE/.tool/built.jsonl"
    declare(tool, target("a", "echo > x") + target("b", f"{spoil}; echo > x", needs="'a'"))

    ran = tool("build")

    assert ran.status != 0
    assert ran.response.get("data") is not None
    assert statuses(ran.response["data"]) == {"a": "built", "b": "failed"}


def test_a_target_that_replaces_out_with_a_link_changes_nothing_there(
    tool: Tool, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "a").write_text("mine")
    declare(
        tool, target("a", f"rm -rf $TOOL_WORKSPACE/out; ln -s {victim} $TOOL_WORKSPACE/out; >x")
    )

    ran = tool("build")

    assert statuses(ran.response["data"]) == {"a": "failed"}
    assert "cannot be kept" in ran.response["data"]["targets"][0]["note"]
    assert (victim / "a").read_text() == "mine"
    assert not (victim / "a").is_symlink()


def test_a_journal_that_is_also_a_file_of_the_user_is_not_appended_to(tool: Tool) -> None:
    declare(tool, target("a", "echo 1 > x"))
    tool("build")
    journal = tool.cwd / ".tool" / "built.jsonl"
    mine = tool.cwd / "mine.txt"
    os.link(journal, mine)
    before = mine.read_bytes()
    declare(tool, target("a", "echo 2 > x"))

    assert statuses(tool("build").data) == {"a": "built"}

    assert mine.read_bytes() == before
    assert statuses(tool("build").data) == {"a": "up_to_date"}


_FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))"


def test_with_few_open_files_fewer_jobs_run_at_once_and_none_fails(tool: Tool, home: Path) -> None:
    # Each job has written something, so its log is open, and runs until the test lets it end.
    script = f"echo something; {UNTIL_GO}; echo > x"
    declare(tool, "".join(target(f"t{number}", script) for number in range(30)))
    process = start_with(tool, _FEW_FILES, "build", "--jobs", "200", "--session-id", "s")

    def has_written_logs() -> bool:
        logs = list(home.glob("tmpdir/*/s/logs-*/*.log"))
        return len(logs) == 8 or process.poll() is not None

    wait_until(has_written_logs)
    (tool.cwd / "go").touch()
    ran = ended(process)

    assert ran.status == 0, ran.response["error"]

    assert set(statuses(ran.data).values()) == {"built"}


_FEW_PROCESSES = """
import errno
from sampletool.kit.safety.children import Children
start = Children.start
def start_if_there_is_room(children, *args, **options):
    if len(children._running) >= {most}:
        raise BlockingIOError(errno.EAGAIN, "no more processes")
    start(children, *args, **options)
Children.start = start_if_there_is_room
"""


def test_a_job_for_which_there_is_no_process_waits_until_another_one_has_exited(tool: Tool) -> None:
    # A real limit of processes does not apply to root.
    declare(tool, "".join(target(f"t{number}", "echo > x") for number in range(8)))

    ran = ended(start_with(tool, _FEW_PROCESSES.format(most=2), "build", "--jobs", "8"))

    assert set(statuses(ran.data).values()) == {"built"}


def test_a_job_fails_if_not_even_one_process_can_be_started(tool: Tool) -> None:
    declare(tool, target("a", "echo > x"))

    ran = ended(start_with(tool, _FEW_PROCESSES.format(most=0), "build"))

    assert statuses(ran.response["data"]) == {"a": "failed"}


# What a person sees


def on_screen(tool: Tool, *args: str) -> list[str]:
    """Return the lines of a terminal on which a line cannot be rewritten."""
    environ = {**tool.environ, "TERM": "dumb"}
    return on_terminal([*COMMAND, *args], tool.cwd, environ, stderr_too=True).splitlines()


def test_a_build_at_a_terminal_shows_each_message_once_and_ends_with_a_summary(tool: Tool) -> None:
    declare(tool, target("a", "echo > x") + target("b", "echo > x", needs="'a'"))

    first = on_screen(tool, "build")
    second = on_screen(tool, "build")

    assert [line.split(" in ")[0] for line in first] == [
        "a: started (it was not built before)",
        "a: built",
        "b: started (it was not built before)",
        "b: built",
        "targets: 2 built",
    ]
    assert second == ["targets: 2 up to date"]


def test_a_dry_run_shows_what_is_stale_and_why(tool: Tool) -> None:
    declare(tool, target("a", "echo > x"))

    assert on_screen(tool, "build", "--dry-run")[1:] == [
        "a: stale (it was not built before)",
        "targets: 1 stale",
    ]


def test_a_failed_build_ends_with_the_error(tool: Tool) -> None:
    declare(tool, target("a", "exit 3") + target("b", "echo > x", needs="'a'"))

    lines = on_screen(tool, "build")

    assert "a: exit code 3" in lines
    assert "b: skipped (a target that it needs failed)" in lines
    assert any(line.startswith("Error: 1 of 2 targets failed: a.") for line in lines)
    assert not any(line.startswith("targets:") for line in lines)


# The environment of a target


def with_env(script: str, env: str) -> str:
    return f"{target('a', script)}env = {{ {env} }}\n"


def test_a_target_has_its_own_environment_variables(tool: Tool) -> None:
    declare(tool, with_env('echo "$GREETING $PATH" > x', "GREETING = 'hello', PATH = '/bin'"))

    tool("build")

    assert (tool.cwd / "out" / "a" / "x").read_text() == "hello /bin\n"


def test_another_environment_makes_a_target_stale(tool: Tool) -> None:
    declare(tool, with_env('echo "$GREETING" > x', "GREETING = 'hello'"))
    tool("build")
    assert statuses(tool("build").data) == {"a": "up_to_date"}

    declare(tool, with_env('echo "$GREETING" > x', "GREETING = 'good day'"))
    again = tool("build")

    assert reason(again, "a") == "its environment changed"
    assert (tool.cwd / "out" / "a" / "x").read_text() == "good day\n"


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ("env = 'A=1'", "env must be a table"),
        ("env = { A = 1 }", "env: A must be a string"),
        ("env = { 'A-B' = '1' }", "env: 'A-B' is not the name of a variable"),
        ("env = { TOOL_WORKSPACE = '/' }", "env: TOOL_WORKSPACE belongs to the tool"),
    ],
)
def test_a_wrong_environment_is_reported_before_anything_runs(
    tool: Tool, env: str, problem: str
) -> None:
    declare(tool, f"{target('a', 'echo > x')}{env}\n")

    error = tool("build").error

    assert error["code"] == "VALIDATION_ERROR"
    assert problem in error["message"] + json.dumps(error["context"])


# Unchanged inputs are not read


def test_an_input_that_has_not_changed_for_a_while_is_not_read_again(tool: Tool) -> None:
    data = tool.cwd / "data.txt"
    data.write_text("one")
    declare(tool, target("a", "cat data.txt > x", inputs="'data.txt'"))
    tool("build")
    changed_at = data.stat().st_ctime
    # A file that was changed less than two seconds ago is not trusted.
    wait_until(lambda: time.time() > changed_at + 2.1)
    tool("build")
    cache = tool.cwd / ".tool" / "digests.json"
    remembered = json.loads(cache.read_text())
    remembered["files"][str(data)][0] = "another digest"
    cache.write_text(json.dumps(remembered))

    believed = tool("build", "--dry-run")
    data.write_text("two")
    changed = tool("build")

    # The build has believed the cache, and it has noticed the change of the file itself.
    assert reason(believed, "a") == "the input data.txt changed"
    assert reason(changed, "a") == "the input data.txt changed"
    assert (tool.cwd / "out" / "a" / "x").read_text() == "two"
