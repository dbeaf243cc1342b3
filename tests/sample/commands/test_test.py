"""tool test"""

import os
import stat
import xml.etree.ElementTree as ET

import pytest

from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Tool
from tests.sample.commands.test_build import declare, target
from tests.sample.support import PATIENCE_SECONDS, are_gone, at_work, pids_in, together, wait_until


def check(name: str, script: str, needs: str = "") -> str:
    return f"[check.{name}]\nrun = ['/bin/sh', '-c', '''{script}''']\nneeds = [{needs}]\n"


def test_checks_run_against_what_is_built(tool: Tool) -> None:
    tool("init")
    assert (tool("test").status, tool("test").code) == (4, "NOT_BUILT")
    tool("build")

    data = tool("test").data

    assert {entry["name"]: entry["status"] for entry in data["checks"]} == {
        "totals-add-up": "passed",
        "report-names-every-region": "passed",
    }


def test_a_failing_check_is_told_with_the_end_of_its_output(tool: Tool) -> None:
    declare(tool, check("good", "true") + check("bad", "echo because; exit 5"))

    ran = tool("test")

    assert (ran.status, ran.code) == (3, "CHECKS_FAILED")
    bad = ran.answer["data"]["checks"][1]
    assert (bad["status"], bad["exit_status"], bad["tail"]) == ("failed", 5, "because\n")
    assert tool("test", "good").status == 0


def test_stale_outputs_are_a_warning_or_built_first(tool: Tool) -> None:
    (tool.cwd / "in").write_text("one")
    declare(tool, target("a", "cp in x", inputs="'in'") + check("c", "grep -q two out/a/x", "'a'"))
    tool("build")
    (tool.cwd / "in").write_text("two")

    as_built, built_first = tool("test"), tool("test", "--build")

    assert as_built.code == "CHECKS_FAILED"
    assert [warning["code"] for warning in as_built.answer["warnings"]] == ["STALE_OUTPUT"]
    assert "the input in changed" in as_built.answer["warnings"][0]["message"]
    assert (built_first.status, built_first.answer["warnings"]) == (0, [])


def test_a_failing_build_before_the_checks_is_the_answer(tool: Tool) -> None:
    declare(tool, target("a", "exit 1") + check("c", "true", "'a'"))

    assert tool("test", "--build").code == "BUILD_FAILED"


def test_many_tests_at_once_are_many_successes(tool: Tool) -> None:
    declare(tool, target("a", "echo > x") + check("c", "test -e out/a/x", "'a'"))
    tool("build")

    results = tool.together([["test"]] * scale(10, 50))

    assert [ran.status for ran in results] == [0] * len(results)


def test_a_build_is_kept_out_by_tests_and_told_by_which(tool: Tool) -> None:
    declare(tool, target("a", "echo > x") + check("slow", "sleep 30"))
    tool("build")
    testing = tool.start("test", "--session-id", "testing")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/testing/*/checks/slow")))

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


@pytest.mark.parametrize("fails", [False, True])
def test_junit_is_written_whole_also_when_a_check_fails(tool: Tool, fails: bool) -> None:
    script = "printf 'a<b\\\\033&'; exit 1" if fails else "true"
    declare(tool, check("c", script))

    tool("test", "--junit", "results.xml")

    suite = ET.parse(tool.cwd / "results.xml").getroot()  # noqa: S314
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1" if fails else "0")
    assert (suite.find("testcase/failure") is not None) == fails


def test_junit_can_be_read_whatever_a_check_printed(tool: Tool) -> None:
    declare(tool, check("c", "printf 'a<b\\033&\\357\\277\\276'; exit 1") + "[check.d]\nrun = ['no\\u0007']\n")

    tool("test", "--junit", "results.xml")

    suite = ET.parse(tool.cwd / "results.xml").getroot()  # noqa: S314
    assert suite.findtext("testcase/failure") == "a<b\\x1b&\\ufffe"


@pytest.mark.parametrize("place", ["fifo", "directory", "missing/results.xml"])
def test_where_no_junit_file_can_be_is_said_before_anything_runs(tool: Tool, place: str) -> None:
    declare(tool, check("c", f"touch {tool.cwd}/ran"))
    os.mkfifo(tool.cwd / "fifo")
    (tool.cwd / "directory").mkdir()

    assert tool("test", "--junit", place).code in ("UNSAFE_PATH", "FILE_NOT_FOUND")
    assert not (tool.cwd / "ran").exists()
    assert stat.S_ISFIFO((tool.cwd / "fifo").stat().st_mode)


@pytest.mark.parametrize(
    "place", ["tool.toml", ".tool/new.xml", ".tool/built.jsonl", "out/new.xml", "out/a/x", "in.csv", "link"]
)
def test_junit_is_never_written_over_anything_but_a_report(tool: Tool, place: str) -> None:
    declare(tool, target("a", "echo '<?xml ?><testsuite/>' > x") + check("c", f"touch {tool.cwd}/ran"))
    tool("build")
    (tool.cwd / "in.csv").write_text("<?xml version='1.0'?><rows><testsuite/></rows>")
    (tool.cwd / "link").symlink_to("tool.toml")
    before = {path: path.read_bytes() for path in tool.cwd.rglob("*") if path.is_file()}

    for forecast in ((), ("--dry-run",)):
        ran = tool("test", "--junit", place, *forecast)
        assert (ran.status, ran.code) == (2, "UNSAFE_PATH")

    assert {path: path.read_bytes() for path in tool.cwd.rglob("*") if path.is_file()} == before


def test_an_empty_file_is_a_place_for_a_report(tool: Tool) -> None:
    declare(tool, check("c", "true"))
    (tool.cwd / "made-by-mktemp").touch()

    assert tool("test", "--junit", "made-by-mktemp").status == 0
    assert "<testsuite" in (tool.cwd / "made-by-mktemp").read_text()


def test_a_report_that_is_there_is_replaced_and_keeps_its_mode(tool: Tool) -> None:
    declare(tool, check("c", "true"))
    report = tool.cwd / "results.xml"
    tool("test", "--junit", "results.xml")
    assert report.stat().st_mode & 0o777 == 0o666 & ~_umask()
    ours = report.read_bytes()
    report.write_text('<?xml version="1.0" encoding="utf-8"?><testsuites></testsuites>')
    report.chmod(0o640)

    assert tool("test", "--junit", "results.xml").status == 0
    assert tool("test", "--junit", "results.xml").status == 0

    assert report.read_bytes() == ours
    assert report.stat().st_mode & 0o777 == 0o640


def _umask() -> int:
    umask = os.umask(0o022)
    os.umask(umask)
    return umask


def test_missing_inputs_are_told_at_once_and_nothing_runs(tool: Tool) -> None:
    declare(tool, "".join(f"[check.c{n}]\nrun = ['touch', '{tool.cwd}/ran']\ninputs = ['no{n}']\n" for n in range(2)))

    ran = tool("test")

    assert [error["param"] for error in ran.error["errors"]] == ["check.c0", "check.c1"]
    assert not (tool.cwd / "ran").exists()


def test_a_workspace_without_checks_is_not_an_error(tool: Tool) -> None:
    declare(tool, "")

    assert tool("test").data == {"checks": [], "total": 0}
    assert "no checks" in tool("test", "--format", "text").text


def test_a_misspelt_check_has_a_hint(tool: Tool) -> None:
    declare(tool, check("contents", "true"))

    assert "'contents'" in tool("test", "content").error["suggestion"]


def test_timing_out_leaves_nothing_running(tool: Tool) -> None:
    declare(tool, check("c", at_work()))

    ran = tool("test", "--timeout", "2s")

    assert ran.code == "TIMEOUT"
    assert are_gone(pids_in(tool.cwd / "pids"))


@pytest.mark.parametrize("check", ["[check.a]\nneeds = ['a']", "[check.a]\nneeds = ['b']\n[check.b]\nneeds = ['a']"])
def test_a_check_may_have_the_name_of_a_target(tool: Tool, check: str) -> None:
    targets = "".join(
        f"[target.{n}]\nrun = ['/bin/sh', '-c', 'echo {n} > x; touch y']\noutputs = ['x']\n" for n in "ab"
    )
    (tool.cwd / "tool.toml").write_text(targets + check.replace("needs", "run = ['test', '-d', 'out']\nneeds"))

    ran = tool("test", "--build")

    assert {told["status"] for told in ran.data["checks"]} == {"passed"}
