"""tool build: what is built, of what, and what is refused."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.testing.tool import COMMAND, Tool
from sampletool.sample.commands import build as module
from sampletool.sample.commands.build import Build
from sampletool.sample.job import Job
from sampletool.sample.job_result import JobResult, Status
from sampletool.sample.journal import BuildRecord
from sampletool.sample.plan import PlannedJob
from tests.sample.support import declare, set_usual_ms, statuses, target, together, usual_ms


def test_the_first_build_builds_all_and_the_second_nothing(tool: Tool, demo: Path) -> None:
    first = tool("build").data
    assert statuses(first) == {"totals": "built", "report": "built"}
    assert "seconds" not in json.dumps(first), "data have no durations"
    assert (demo / "out" / "report" / "report.txt").read_text().startswith("east")

    again = tool("build").data
    assert (again["effect"], statuses(again)) == (
        "unchanged",
        {"totals": "up_to_date", "report": "up_to_date"},
    )


def test_a_build_with_nothing_to_do_does_not_change_the_usual_duration(
    tool: Tool, demo: Path
) -> None:
    """A caller that is refused would otherwise be told to try again after milliseconds."""
    assert tool("build").data["effect"] != "unchanged"
    lock_path = demo / ".tool" / "locks" / "build.lock"
    set_usual_ms(lock_path, 123_456)

    assert tool("build").data["effect"] == "unchanged"

    assert usual_ms(lock_path) == 123_456


def test_a_build_that_builds_something_changes_the_usual_duration(tool: Tool, demo: Path) -> None:
    lock_path = demo / ".tool" / "locks" / "build.lock"
    lock_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock_path.parent.parent.chmod(0o700)
    set_usual_ms(lock_path, 123_456_789)

    tool("build")

    assert 0 < (usual_ms(lock_path) or 0) < 123_456_789


def test_a_dry_run_of_a_build_creates_nothing(tool: Tool, totals: Path) -> None:
    before = sorted(totals.rglob("*"))

    ran = tool("build", "--dry-run")

    assert statuses(ran.data) == {"totals": "stale", "report": "stale"}
    assert ran.meta["dry_run"] is True
    assert sorted(totals.rglob("*")) == before


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


def test_a_target_finds_the_outputs_of_its_needs_and_undeclared_files_are_removed(
    tool: Tool,
) -> None:
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
    data = ran.response["data"]
    assert statuses(data) == {
        "bad": "failed",
        "above": "skipped",
        "top": "skipped",
        "good": "built",
    }
    bad = data["targets"][0]
    assert (bad["exit_status"], bad["tail"]) == (7, "why\n")
    assert Path(bad["log"]).read_text() == "why\n"
    assert bad["log"].startswith(tool.environ["TMPDIR"])


def test_a_failed_build_leaves_the_last_good_outputs_and_the_next_one_continues(tool: Tool) -> None:
    declare(tool, target("a", "echo one > x") + target("b", "cp in x", inputs="'in'"))
    (tool.cwd / "in").write_text("good")
    tool("build")
    declare(tool, target("a", "echo two > x") + target("b", "cp in x; exit 1", inputs="'in'"))

    assert statuses(tool("build").response["data"]) == {"a": "built", "b": "failed"}
    assert (tool.cwd / "out" / "b" / "x").read_text() == "good"
    declare(tool, target("a", "echo two > x") + target("b", "cp in x; true", inputs="'in'"))
    assert statuses(tool("build").data) == {"a": "up_to_date", "b": "built"}


@pytest.mark.parametrize(
    ("script", "note"),
    [("true", "did not write its output 'x'"), ("ln -s /etc/passwd x", "is a link"),
     ("mkdir x; ln -s /etc x/y", "is a link"), ("mkdir x; mkfifo x/p", "not a regular file")],
)  # fmt: skip
def test_an_output_that_is_missing_or_leads_away_is_a_failure(
    tool: Tool, script: str, note: str
) -> None:
    declare(tool, target("a", script))

    ran = tool("build", "--timeout", "20s")

    assert note in ran.response["data"]["targets"][0]["note"]
    assert not (tool.cwd / "out" / "a").exists()


def test_a_missing_program_is_a_failed_target(tool: Tool) -> None:
    declare(
        tool, "[target.a]\nrun = ['no-such-program']\noutputs = ['x']\n" + target("b", "echo > x")
    )

    assert statuses(tool("build").response["data"]) == {"a": "failed", "b": "built"}


def test_all_obstacles_are_reported_before_anything_runs(tool: Tool) -> None:
    declare(
        tool,
        target("a", "echo > x", inputs="'missing'")
        + target("b", "echo > x")
        + target("c", "echo > x"),
    )
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
        f"Error: {tool.cwd}/tool.toml has 3 problems. No command was run. [VALIDATION_ERROR]",
        "line 1, target.a: outputs is missing: the files that the command writes",
        "line 3, check.b: run is missing: the command as a list, such as ['python3', 'make.py']",
        "line 3, check.b: it needs 'c', which is not a target",
        "Correct all of them, then run the command again.",
    ]


def test_a_misspelt_target_and_a_missing_workspace_are_reported(tool: Tool, totals: Path) -> None:
    ran = tool("build", "reprot")
    assert (ran.status, ran.code) == (5, "TARGET_NOT_FOUND")
    assert "'report'" in ran.error["suggestion"]

    (totals / "tool.toml").unlink()
    assert (tool("build").status, tool("build").code) == (4, "NO_WORKSPACE")


def test_all_settings_that_are_wrong_are_reported_before_anything_runs(tool: Tool) -> None:
    wrong = ["jobs", "lock_timeout"]
    settings = "".join(f'{name} = "banana"\n' for name in wrong)
    declare(tool, f"[settings]\n{settings}" + target("a", f"touch {tool.cwd}/ran; echo > x"))

    for command in (
        ("build",),
        ("build", "--dry-run"),
        ("test",),
        ("test", "--build"),
        ("test", "--dry-run"),
    ):
        ran = tool(*command)
        assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
        assert [error["param"] for error in ran.error["errors"]] == wrong

    assert not (tool.cwd / "ran").exists()
    assert not (tool.cwd / ".tool" / "locks").exists()


def test_targets_run_in_parallel_up_to_jobs(tool: Tool) -> None:
    declare(tool, "".join(target(f"t{n}", f"{together(3)}; echo > x") for n in range(3)))
    all_at_once = tool("build", "--jobs", "3", "--timeout", "40s")

    alone = "mkdir $TOOL_WORKSPACE/alone && sleep 0.1 && rmdir $TOOL_WORKSPACE/alone && echo > x"
    declare(tool, "".join(target(f"t{n}", alone) for n in range(3)))
    one_by_one = tool("build", "--jobs", "1")

    assert (
        set(statuses(all_at_once.data).values())
        == set(statuses(one_by_one.data).values())
        == {"built"}
    )


def test_outputs_that_cannot_be_kept_are_a_failed_target_and_the_others_are_built(
    tool: Tool,
) -> None:
    (tool.cwd / "out").mkdir()
    declare(
        tool,
        target("a", "rm -rf $TOOL_WORKSPACE/out/a; mkdir $TOOL_WORKSPACE/out/a; echo > x")
        + target("b", "echo > x"),
    )

    ran = tool("build")

    assert statuses(ran.response["data"]) == {"a": "failed", "b": "built"}
    assert "cannot be kept" in ran.response["data"]["targets"][0]["note"]


def test_a_read_only_scratch_directory_is_removed(tool: Tool) -> None:
    declare(
        tool,
        target("a", "mkdir -p cache/deep; touch cache/deep/file; chmod -R a-w cache; echo > x"),
    )

    assert tool("build").status == 0
    assert list(tool.cwd.glob(".tool/tmp/*")) == []


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
def test_odd_declarations_are_reported_before_anything_runs(tool: Tool, text: str) -> None:
    declare(tool, text)

    assert tool("build").code == "VALIDATION_ERROR"


def test_a_small_build_needs_little_memory(tool: Tool, totals: Path) -> None:
    """A journal of some hundred bytes needs no gigabyte, wherever the limit of its size is."""
    tool("build")

    for command in (["build"], ["build", "--dry-run"], ["test"]):
        limited = ["sh", "-c", 'ulimit -v 400000; exec "$@"', "-", *COMMAND, *command]
        ran = subprocess.run(
            limited, cwd=totals, env=tool.environ, capture_output=True, stdin=subprocess.DEVNULL
        )

        assert json.loads(ran.stdout).get("error") is None
        assert ran.returncode == 0


def test_a_command_sees_the_variables_of_the_caller(tool: Tool) -> None:
    declare(tool, target("a", "env > x"))

    tool("build", "--session-id", "s-1", TOOL_STORE="memory:", TOOL_TRACE_ID="t-1", TOOL_JOBS="3")

    seen = (tool.cwd / "out" / "a" / "x").read_text().splitlines()
    assert {"TOOL_TRACE_ID=t-1", "TOOL_JOBS=3", "TOOL_SESSION_ID=s-1", "TOOL_STORE=memory:"} <= set(
        seen
    )
    assert tool("build", TOOL_TRACE_ID="t-2").data["effect"] == "unchanged"


def test_a_wrong_name_creates_nothing(tool: Tool, totals: Path) -> None:
    before = sorted(totals.rglob("*"))

    assert [tool(command, "nosuch").code for command in ("build", "test")] == [
        "TARGET_NOT_FOUND"
    ] * 2
    assert sorted(totals.rglob("*")) == before


def _planned(name: str, *, must_run: bool) -> PlannedJob:
    record = BuildRecord(run=[], wanted=[], inputs={}, needs={})
    return PlannedJob(Job(name), record, must_run=must_run, reason="why" if must_run else None)


_UP_TO_DATE = _planned("a", must_run=False)
_STALE = _planned("b", must_run=True)
_ALL_UP_TO_DATE = Build("unchanged", [JobResult("a", "up_to_date")])


@pytest.mark.parametrize(
    ("planned", "result"),
    [
        ([_UP_TO_DATE], _ALL_UP_TO_DATE),
        ([_UP_TO_DATE, _STALE], None),
        ([], Build("unchanged", [])),
    ],
)
def test_without_the_lock_it_is_known_only_that_there_is_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    planned: list[PlannedJob],
    result: Build | None,
) -> None:
    seen: list[object] = []

    def plan(declarations: object, names: list[str], _outputs: object) -> dict[str, PlannedJob]:
        seen.extend([declarations, names])
        return {job.job.name: job for job in planned}

    monkeypatch.setattr(module, "plan", plan)
    context: Any = SimpleNamespace(workspace=tmp_path)
    declarations: Any = "the declarations"

    assert module._result_if_up_to_date(context, declarations, ["a"]) == result
    assert seen == ["the declarations", ["a"]]


@pytest.mark.parametrize(
    ("status", "effect"),
    [
        ("built", "updated"),
        ("stale", "updated"),
        ("up_to_date", "unchanged"),
        ("failed", "unchanged"),
        ("skipped", "unchanged"),
    ],
)
def test_a_build_has_an_effect_if_a_target_was_built_or_would_be(
    status: Status,
    effect: str,
) -> None:
    results = [JobResult("a", "up_to_date"), JobResult("b", status)]

    build = module._summarize(results)

    assert (build.effect, build.targets) == (effect, results)


def test_a_forecast_says_which_targets_are_stale_and_why(tool: Tool, totals: Path) -> None:
    tool("build", "totals")

    ran = tool("build", "--dry-run")

    assert ran.data == {
        "effect": "updated",
        "targets": [
            {"name": "totals", "status": "up_to_date"},
            {"name": "report", "status": "stale", "reason": "it was not built before"},
        ],
    }
    assert not (totals / "out" / "report").exists()
