"""Sets its first key like anybody; every later call says that it has begun, and never ends."""

import os
import sys
import time
from pathlib import Path

home = Path(os.environ["HOME"])
if sys.argv[1] == "get":
    sys.stdout.write((home / sys.argv[2]).read_text())
elif list(home.glob("k*")):
    Path(os.environ["TMPDIR"], f"began-{os.getpid()}").touch()
    time.sleep(600)
else:
    (home / sys.argv[2]).write_text(sys.argv[3])
