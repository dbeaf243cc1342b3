"""A build with nothing to do takes no lock, and reads no file that it has read before."""

import os
import time
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from tests.sample.support import declare, start, statuses, target, wait_until

_SETTLED_SECONDS = 2.1
"""A digest is remembered if the file has not changed for two seconds."""


@pytest.fixture
def settled(tool: Tool) -> Path:
    """Return a workspace whose target is up to date, and whose digests are remembered."""
    (tool.cwd / "input").write_text("one")
    declare(tool, target("quick", "cat input > x", inputs="'input'"))
    tool("build")
    changed_at = (tool.cwd / "out" / "quick" / "x").stat().st_ctime
    wait_until(lambda: time.time() > changed_at + _SETTLED_SECONDS)
    tool("build")
    return tool.cwd


def test_a_build_with_nothing_to_do_needs_no_lock_while_another_one_builds(
    tool: Tool, settled: Path
) -> None:
    toml = settled / "tool.toml"
    slow = target("slow", "touch started; sleep 30; echo > x")
    toml.write_text(toml.read_text() + slow)
    building = start(tool, "build", "slow", name="slow")

    nothing_to_do = tool("build", "quick")
    something_to_do = tool("build")

    assert nothing_to_do.status == 0
    assert nothing_to_do.data["effect"] == "unchanged"
    assert statuses(nothing_to_do.data) == {"quick": "up_to_date"}
    assert "waited_ms" not in nothing_to_do.meta
    assert something_to_do.code == "LOCK_HELD"
    building.terminate()
    building.communicate()


@pytest.mark.parametrize("path", ["input", "out/quick/x"])
def test_a_file_with_another_time_is_read_under_the_lock(
    tool: Tool, settled: Path, path: str
) -> None:
    os.utime(settled / path, (0, 0))

    ran = tool("build")

    assert ran.data["effect"] == "unchanged"
    assert "waited_ms" in ran.meta


def test_a_changed_input_is_built_although_its_size_is_the_same(tool: Tool, settled: Path) -> None:
    (settled / "input").write_text("two")

    ran = tool("build")

    assert statuses(ran.data) == {"quick": "built"}
    assert (settled / "out" / "quick" / "x").read_text() == "two"
