"""A lock file created with O_EXCL: losers get prose, and a killed holder blocks all others."""

import json
import os
import sys
import time
from pathlib import Path

file = Path(os.environ["HOME"]) / "settings.json"
temporary = file.with_name("new.json")
lock = file.with_suffix(".lock")
try:
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    sys.exit("error: another process is writing, try again later")
settings = json.loads(file.read_text()) if file.exists() else {}
settings[sys.argv[1]] = sys.argv[2]
# Long enough that a busy machine meets it.
time.sleep(0.05)
temporary.write_text(json.dumps(settings))
temporary.rename(file)
lock.unlink()
