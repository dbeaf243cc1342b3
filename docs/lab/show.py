"""What `make run` shows of this part."""

import subprocess
from pathlib import Path

from docs.kit.show.__main__ import TOOL, say


def show(_scratch: Path) -> None:
    say("Race conditions, each made to happen by a schedule, beside the way that holds (tool lab run --all):")
    say()
    subprocess.run([*TOOL, "lab", "run", "--all", "--format", "text", "--timeout", "5m"], check=False)
