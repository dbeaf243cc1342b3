"""What most tools do: read the settings, change one, write them all back. Alone it is right."""

import sys
import tomllib
from pathlib import Path

path, key, value = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
settings = tomllib.loads(path.read_text())["settings"]
settings[key] = int(value)
path.write_text("[settings]\n" + "".join(f"{name} = {number}\n" for name, number in settings.items()))
