"""A parent that ignores SIGCHLD: the kernel would throw away how children ended."""

from pathlib import Path

from sampletool.kit.program import PACKAGE
from sampletool.kit.testing.tool import Ran, Tool, ended

_IGNORING = f"""
import runpy, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
runpy.run_module({PACKAGE!r}, run_name="__main__", alter_sys=True)
"""


def ran(tool: Tool, *args: str | Path) -> Ran:
    """Run a command that ignores SIGCHLD from the start, as if its parent had ignored it."""
    return ended(tool.start(*args, program=["-c", _IGNORING]))


def test_a_target_that_fails_is_not_published(tool: Tool) -> None:
    (tool.cwd / "tool.toml").write_text(
        "[target.a]\nrun = ['/bin/sh', '-c', 'echo half > x; exit 3']\noutputs = ['x']\n"
    )

    built = ran(tool, "build")

    assert (built.status, built.code) == (3, "BUILD_FAILED")
    assert built.response["data"]["targets"][0]["exit_status"] == 3
    assert not (tool.cwd / "out" / "a").exists()


def test_a_check_that_fails_is_reported(tool: Tool) -> None:
    (tool.cwd / "tool.toml").write_text("[check.a]\nrun = ['/bin/sh', '-c', 'exit 3']\n")

    assert ran(tool, "test").code == "CHECKS_FAILED"


def test_process_works_all_the_same(tool: Tool) -> None:
    (tool.cwd / "data.csv").write_text("a,b\n1,2\n")

    assert (
        ran(tool, "process", "--input", "data.csv", "--output", "x.json").data["effect"]
        == "created"
    )
