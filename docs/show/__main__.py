"""Record the demonstrations again: `python -m docs.show`.

It writes a recording for asciinema and an animated picture for each of them. The times and the
number of lost keys differ from run to run, so nothing compares these files.
"""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from docs.show.animation import animation
from docs.show.recording import Step, asciicast, record
from sampletool.kit.program import WORKSPACE_FILE

_FOLDER = Path(__file__).parent

_NAIVE = """import sys, time
text = open("tool.toml").read()
time.sleep(0.1)  # a slow program makes the loss more likely
open("tool.toml", "w").write(f"{text}{sys.argv[1]} = 1\\n")
"""

_COUNT = 'echo "$(grep -c key tool.toml) of 20 keys are there"'

LOST_UPDATE = [
    Step("cat naive.py"),
    Step("for n in $(seq 20); do python3 naive.py key$n & done; wait"),
    Step(_COUNT),
    Step('echo "[settings]" > tool.toml'),
    Step("for n in $(seq 20); do tool config set key$n 1 --quiet > /dev/null & done; wait"),
    Step(_COUNT),
]

_WORKSPACE = """[settings]

[target.report]
run = ["sh", "-c", "sleep 4; echo done > report.txt"]
inputs = []
outputs = ["report.txt"]
"""

TWO_AGENTS = [
    Step("tool build", user="ann", in_background=True),
    Step("tool build", user="bob", seconds_before=1),
    Step("tool build --lock-timeout 30s", user="bob"),
    Step("tool task add prices apples pears plums", user="ann"),
    Step("tool task claim prices", user="ann"),
    Step("tool task claim prices", user="bob"),
    Step("for n in $(seq 10); do tool counter add visits > /dev/null & done; wait", user="ann"),
    Step("tool counter get visits", user="bob"),
]


def main() -> None:
    """Record both demonstrations."""
    write("lost-update", "A lost update, and the fix", LOST_UPDATE, "[settings]\n")
    write("two-agents", "Two agents share a workspace", TWO_AGENTS, _WORKSPACE)


def write(name: str, title: str, steps: list[Step], workspace: str) -> None:
    """Record one demonstration in a directory of its own, and write its files."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch, "home")
        work = Path(scratch, "work")
        home.mkdir()
        work.mkdir()
        (work / WORKSPACE_FILE).write_text(workspace)
        (work / "naive.py").write_text(_NAIVE)
        binaries = Path(sys.prefix, "bin")
        environ = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(home),
            "TMPDIR": str(home),
            "LC_ALL": "C.UTF-8",
            "TOOL_FORMAT": "text",
            "COLUMNS": "92",
        }
        lines = record(steps, work, environ)
    shown = []
    for line in lines:
        text = line.text.replace(f"{scratch}/work", "~/work").replace(f"{scratch}/home", "~")
        shown.append(replace(line, text=text))
    (_FOLDER / f"{name}.cast").write_text(asciicast(shown, title))
    (_FOLDER / f"{name}.svg").write_text(animation(shown, title))


if __name__ == "__main__":
    main()
