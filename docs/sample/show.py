"""What `make run` shows of this part."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from docs.kit.show.__main__ import LONGEST_SECONDS, TOOL, ended, say


def show(scratch: Path) -> None:
    """One works; the answer of the other names it, and says when to come back."""
    demo = scratch / "demo"
    demo.mkdir()
    (demo / "tool.toml").write_text(
        '[target.slow]\nrun = ["sh", "-c", "touch \\"$TOOL_WORKSPACE/began\\" && sleep 60"]\noutputs = ["x"]\n'
    )
    with building(demo):
        second = subprocess.run([*TOOL, "build"], cwd=demo, capture_output=True, check=False, timeout=LONGEST_SECONDS)
    error = json.loads(second.stdout).get("error", {})
    say("Two builds at once: one works; the answer of the other names it, and says when to come back:")
    say(f"  $ tool build   # exit status {second.returncode}")
    for name in ("code", "message", "retryable", "retry_after_ms"):
        say(f"  {name}: {json.dumps(error.get(name))}")


@contextmanager
def building(directory: Path) -> Iterator[None]:
    """A process is in the middle of a build; nobody waits for one that has ended."""
    process = subprocess.Popen([*TOOL, "build"], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + LONGEST_SECONDS
    try:
        while not (directory / "began").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        yield
    finally:
        process.terminate()
        ended(process)
