"""tool test"""

from pathlib import Path
from typing import NoReturn

import pytest

from sampletool.kit.context import Context
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Tool
from sampletool.sample.commands import test as module
from sampletool.sample.job import Job
from sampletool.sample.journal import BuildRecord
from sampletool.sample.plan import PlannedJob
from tests.sample.support import (
    PATIENCE_SECONDS,
    are_gone,
    at_work,
    declare,
    out_of_time,
    pids_in,
    target,
    together,
    wait_until,
)


def check(name: str, script: str, needs: str = "") -> str:
    return f"[check.{name}]\nrun = ['/bin/sh', '-c', '''{script}''']\nneeds = [{needs}]\n"


def test_checks_run_against_built_outputs(tool: Tool) -> None:
    built = "test -e out/a/x"
    declare(tool, target("a", "echo > x") + check("c", built, "'a'") + check("d", built, "'a'"))
    assert (tool("test").status, tool("test").code) == (4, "NOT_BUILT")
    tool("build")

    data = tool("test").data

    assert {entry["name"]: entry["status"] for entry in data["checks"]} == {
        "c": "passed",
        "d": "passed",
    }


def test_a_failing_check_is_reported_with_the_end_of_its_output(tool: Tool) -> None:
    declare(tool, check("good", "true") + check("bad", "echo because; exit 5"))

    ran = tool("test")

    assert (ran.status, ran.code) == (3, "CHECKS_FAILED")
    bad = ran.response["data"]["checks"][1]
    assert (bad["status"], bad["exit_status"], bad["tail"]) == ("failed", 5, "because\n")
    assert tool("test", "good").status == 0


def test_a_report_with_only_the_end_of_the_output_is_truncated(tool: Tool) -> None:
    declare(tool, check("good", "seq 20") + check("bad", "seq 2000; exit 5"))

    assert "truncated" not in tool("test", "good").meta
    assert tool("test", "bad").meta["truncated"]


def test_stale_outputs_are_a_warning_or_built_first(tool: Tool) -> None:
    (tool.cwd / "in").write_text("one")
    declare(tool, target("a", "cp in x", inputs="'in'") + check("c", "grep -q two out/a/x", "'a'"))
    tool("build")
    (tool.cwd / "in").write_text("two")

    as_built, built_first = tool("test"), tool("test", "--build")

    assert as_built.code == "CHECKS_FAILED"
    assert [warning["code"] for warning in as_built.response["warnings"]] == ["STALE_OUTPUT"]
    assert "the input in changed" in as_built.response["warnings"][0]["message"]
    assert (built_first.status, built_first.response["warnings"]) == (0, [])


def test_if_the_build_before_the_checks_fails_no_check_runs(tool: Tool) -> None:
    declare(tool, target("a", "exit 1") + check("c", "true", "'a'"))

    assert tool("test", "--build").code == "BUILD_FAILED"


def test_many_tests_at_once_are_many_successes(tool: Tool) -> None:
    count = scale(3, 12)
    declare(
        tool, target("a", "echo > x") + check("c", f"test -e out/a/x && {together(count)}", "'a'")
    )
    tool("build")

    results = tool.together([["test", "--timeout", f"{scale(20, 40)}s"]] * count)

    assert [ran.status for ran in results] == [0] * len(results)


def test_a_build_during_tests_fails_and_names_the_test(tool: Tool) -> None:
    declare(tool, target("a", "echo > x") + check("slow", "sleep 30"))
    tool("build")
    testing = tool.start("test", "--session-id", "testing")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/testing.*/checks/slow")))

    ran = tool("build")

    assert (ran.status, ran.code) == (75, "LOCK_HELD")
    holder = ran.error["context"]["holder"]
    assert (holder["pid"], holder["command"]) == (testing.pid, "test")
    assert str(testing.pid) in ran.error["message"]
    testing.terminate()
    testing.communicate(timeout=PATIENCE_SECONDS)


def test_a_check_works_in_a_directory_of_its_own(tool: Tool) -> None:
    mine = f'test -z "$(ls -A)" && touch mine-$$ && {together(4)} && test "$(ls -A)" = mine-$$'
    declare(tool, "".join(check(f"c{n}", mine) for n in range(4)))

    assert tool("test", "--jobs", "4", "--timeout", "40s").status == 0


def test_a_check_without_an_input_has_failed(tool: Tool) -> None:
    declare(tool, "[check.c]\nrun = ['true']\ninputs = ['no']\n[check.d]\nrun = ['true']\n")

    c, d = tool("test").response["data"]["checks"]

    assert (c["status"], c["note"], d["status"]) == (
        "failed",
        "the input 'no' matches no file",
        "passed",
    )


def test_a_workspace_without_checks_is_not_an_error(tool: Tool) -> None:
    declare(tool, "")

    assert tool("test").data == {"checks": []}
    assert "no checks" in tool("test", "--format", "text").text


def test_a_misspelt_check_has_a_hint(tool: Tool) -> None:
    declare(tool, check("contents", "true"))

    assert "'contents'" in tool("test", "content").error["suggestion"]


def test_timing_out_leaves_nothing_running(tool: Tool) -> None:
    declare(tool, check("c", at_work()))

    ran = out_of_time(tool, "test")

    assert ran.code == "TIMEOUT"
    assert are_gone(pids_in(tool.cwd / "pids"))


@pytest.mark.parametrize(
    "check", ["[check.a]\nneeds = ['a']", "[check.a]\nneeds = ['b']\n[check.b]\nneeds = ['a']"]
)
def test_a_check_may_have_the_name_of_a_target(tool: Tool, check: str) -> None:
    targets = "".join(
        f"[target.{n}]\nrun = ['/bin/sh', '-c', 'echo {n} > x; touch y']\noutputs = ['x']\n"
        for n in "ab"
    )
    (tool.cwd / "tool.toml").write_text(
        targets + check.replace("needs", "run = ['test', '-d', 'out']\nneeds")
    )

    ran = tool("test", "--build")

    assert {told["status"] for told in ran.data["checks"]} == {"passed"}


@pytest.mark.parametrize(("first_build", "mode"), [(True, "exclusive"), (False, "shared")])
def test_tests_share_the_build_lock_unless_they_build_first(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    first_build: bool,
    mode: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tool.toml").touch()
    asked: list[object] = []

    def build_lock(_context: object, *arguments: object, **options: object) -> NoReturn:
        asked.append((*arguments, options))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "build_lock", build_lock)

    with pytest.raises(KeyboardInterrupt):
        module.test(Context(Signals()), [], 3, first_build=first_build, force_unlock=True)

    assert asked == [(mode, 3, {"force_unlock": True})]


def test_each_target_that_checks_need_is_built_and_looked_for_once() -> None:
    checks = [Job("c", needs=("a", "b")), Job("d", needs=("b", "e")), Job("f")]

    assert module._needs_of(checks) == ["a", "b", "e"]


def test_a_check_runs_each_time() -> None:
    check = Job("c", run=("true",))

    assert module._plan_check(check) == PlannedJob(
        job=check,
        record=BuildRecord(run=[], wanted=[], inputs={}, needs={}),
        must_run=True,
    )


def test_a_forecast_shows_the_checks_and_runs_none(tool: Tool) -> None:
    declare(tool, check("c", "touch $TOOL_WORKSPACE/ran") + check("d", "true"))

    all_checks, one = tool("test", "--dry-run"), tool("test", "d", "--dry-run")

    would_run = {"status": "would_run"}
    assert all_checks.data == {"checks": [{"name": "c", **would_run}, {"name": "d", **would_run}]}
    assert one.data == {"checks": [{"name": "d", **would_run}]}
    assert not (tool.cwd / "ran").exists()
