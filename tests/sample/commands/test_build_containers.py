"""Builds in containers: the holder of a lock may be in another pid namespace."""

import json
import subprocess
import sys
from typing import Any

import pytest

from sampletool.kit.testing.tool import Tool
from tests.sample.support import PATIENCE_SECONDS, declare, target, wait_until

_CONTAINER = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


@pytest.fixture(autouse=True)
def possible() -> None:
    try:
        subprocess.run([*_CONTAINER, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no pid namespace can be made here")


def inside(tool: Tool, *argv: str) -> Any:
    """Return the response of the last command that runs inside of a container."""
    ran = subprocess.run(
        [*_CONTAINER, *argv],
        cwd=tool.cwd,
        env=tool.environ,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    return json.loads(ran.stdout.splitlines()[-1])


def test_a_holder_outside_is_shown_as_unknown_and_not_harmed(tool: Tool) -> None:
    declare(tool, target("a", "touch started; sleep 30"))
    holder = tool.start("build", "--session-id", "outside")
    wait_until(lambda: list(tool.cwd.glob(".tool/tmp/*/*/a/started")))

    found = inside(tool, sys.executable, "-m", "sampletool", "lock", "list")
    refused = inside(tool, sys.executable, "-m", "sampletool", "build", "--force-unlock")

    told = [lock["holders"] for lock in found["data"]["locks"]] + [
        [refused["error"]["context"]["holder"]]
    ]
    for holders in told:
        assert [(who["pid"], who["state"], who["verified"]) for who in holders] == [
            (holder.pid, "unknown", False)
        ]
    assert holder.poll() is None
    holder.terminate()
    holder.communicate(timeout=PATIENCE_SECONDS)


def test_a_target_in_a_container_of_its_own_harms_nobody(tool: Tool) -> None:
    build = f"{sys.executable} -m sampletool -C $TOOL_WORKSPACE build --force-unlock"
    call = f"{build} > $TOOL_WORKSPACE/told"
    declare(
        tool, target("a", f"{' '.join(_CONTAINER)} sh -c '{call}'; echo > x").replace("'''", '"""')
    )

    assert tool("build").status == 0
    assert json.loads((tool.cwd / "told").read_text())["error"]["code"] == "NESTED_CALL"


def test_in_a_container_an_orphan_is_shown_with_its_dead_parent_and_can_be_ended(
    tool: Tool,
) -> None:
    declare(tool, target("a", "touch started; sleep 30"))
    script = """
        "$@" build & killed=$!
        until ls .tool/tmp/*/*/a/started; do sleep 0.05; done > /dev/null 2>&1
        kill -9 $killed
        "$@" lock list
        echo "[target]" > tool.toml
        "$@" build --force-unlock > after
    """

    found = inside(tool, "sh", "-c", script, "sh", sys.executable, "-m", "sampletool")

    holder = found["data"]["locks"][0]["holders"][0]
    assert (holder["state"], holder["verified"], holder["command"]) == ("orphaned", True, "build")
    after = json.loads((tool.cwd / "after").read_text())
    assert after["ok"]
    assert {warning["code"] for warning in after["warnings"]} == {"ORPHAN_ENDED"}
