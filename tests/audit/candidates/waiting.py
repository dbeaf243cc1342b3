"""A tool with one fault: it waits for its lock without a limit."""

import fcntl
import json
import os
import sys
import time
from pathlib import Path

file = Path(os.environ["HOME"]) / "settings.json"
temporary = file.with_name("new.json")
lock = file.with_suffix(".lock").open("w")
fcntl.flock(lock, fcntl.LOCK_EX)
settings = json.loads(file.read_text()) if file.exists() else {}
settings[sys.argv[1]] = sys.argv[2]
time.sleep(0.02)
temporary.write_text(json.dumps(settings))
temporary.rename(file)
