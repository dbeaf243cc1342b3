"""A tool that sets its first key, and later reports that it has begun, and never exits."""

import os
import sys
import time
from pathlib import Path

home = Path(os.environ["HOME"])
if list(home.glob("settings*")):
    Path(os.environ["TMPDIR"], f"began-{os.getpid()}").touch()
    time.sleep(600)
else:
    (home / "settings").write_text(sys.argv[2])
