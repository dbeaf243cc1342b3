"""Right but for one thing: it waits for the lock as long as it takes."""

import fcntl
import json
import os
import sys
import time
from pathlib import Path

file = Path(os.environ["HOME"]) / "settings.json"
if sys.argv[1] == "get":
    sys.stdout.write(json.loads(file.read_text())[sys.argv[2]])
    sys.exit()
lock = file.with_suffix(".lock").open("w")
fcntl.flock(lock, fcntl.LOCK_EX)
settings = json.loads(file.read_text()) if file.exists() else {}
settings[sys.argv[2]] = sys.argv[3]
time.sleep(0.02)
file.with_suffix(".new").write_text(json.dumps(settings))
file.with_suffix(".new").rename(file)
