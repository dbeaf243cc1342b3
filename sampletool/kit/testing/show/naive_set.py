"""Set a key as many programs do: read all settings, change one, and write all of them back.

This is correct as long as only one process does it at a time.
"""

import sys
import tomllib
from pathlib import Path

path = Path(sys.argv[1])
key = sys.argv[2]
value = int(sys.argv[3])

settings = tomllib.loads(path.read_text())["settings"]
settings[key] = value
lines = ["[settings]\n"]
for name, number in settings.items():
    lines.append(f"{name} = {number}\n")
path.write_text("".join(lines))
