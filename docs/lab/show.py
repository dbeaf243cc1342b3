"""Show a race condition and its fix, step by step. `make run` calls this."""

import subprocess
from pathlib import Path

from sampletool.kit.contract.text import between_words
from sampletool.kit.testing.show.demonstration import TOOL, heading, say
from sampletool.lab.scenario import scenario_names

_WIDTH = 80


def show(_scratch: Path) -> None:
    """Run one race condition, and list the others."""
    heading("A race condition, step by step")
    say("Two processes run the steps below in this order: first with the bug, then with")
    say("the fix.")
    say()
    subprocess.run([*TOOL, "lab", "run", "lost-config-update", "--format", "text"], check=False)
    say()
    say("There are more. To run one, use `tool lab run NAME`. To run all, use")
    say("`tool lab run --all`.")
    say()
    for line in between_words(", ".join(scenario_names()), _WIDTH):
        say(line)
