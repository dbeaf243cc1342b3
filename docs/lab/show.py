"""What `make run` shows of this part."""

import subprocess
from pathlib import Path

from docs.kit.show.__main__ import TOOL, say
from sampletool.kit.contract.text import between_words
from sampletool.lab.scenario import names


def show(_scratch: Path) -> None:
    say("One race condition, made to happen by a schedule, and the way that holds:")
    say()
    subprocess.run([*TOOL, "lab", "run", "lost-config-update", "--format", "text"], check=False)
    say()
    say("The others (tool lab run NAME, or tool lab run --all for all of them):")
    say("\n".join(between_words(", ".join(names()), 80)))
