"""Show what a command reports while another process holds the lock. `make run` calls this."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sampletool.kit.testing.show.demonstration import MAX_SECONDS, TOOL, heading, say, wait_for

_WORKSPACE = """
[target.slow]
run = ["sh", "-c", "touch \\"$TOOL_WORKSPACE/has_begun\\" && sleep 60"]
outputs = ["x"]
"""


def show(scratch: Path) -> None:
    """Start two builds, and print the error of the second one."""
    workspace = scratch / "demo"
    workspace.mkdir()
    (workspace / "tool.toml").write_text(_WORKSPACE)
    with build_running(workspace):
        second_build = subprocess.run(
            [*TOOL, "build"],
            cwd=workspace,
            capture_output=True,
            check=False,
            timeout=MAX_SECONDS,
        )
    error = json.loads(second_build.stdout).get("error", {})
    heading("Two builds at the same time")
    say("The first build is running. The second one fails at once. Its error names the")
    say("process that holds the lock, and says when to try again:")
    say()
    say(f"  $ tool build   # exit code {second_build.returncode}")
    for name in ("code", "message", "suggestion", "retryable", "retry_after_ms"):
        say(f"  {name}: {json.dumps(error.get(name))}")


@contextmanager
def build_running(workspace: Path) -> Iterator[None]:
    """Start a build, and wait until it runs its target. Terminate it when the block ends."""
    process = subprocess.Popen(
        [*TOOL, "build"],
        cwd=workspace,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    give_up_at = time.monotonic() + MAX_SECONDS
    try:
        # If the build has exited, the target will never begin.
        while not (workspace / "has_begun").exists() and process.poll() is None:
            if time.monotonic() > give_up_at:
                break
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        wait_for(process)
