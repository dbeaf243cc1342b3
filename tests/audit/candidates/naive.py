"""A tool like many others: it reads a file, changes it and writes it back, without a lock."""

import json
import os
import sys
import time
from pathlib import Path

file = Path(os.environ["HOME"]) / "settings.json"
settings = json.loads(file.read_text()) if file.exists() else {}
with file.with_name("log").open("a") as log:
    log.write("read\n")
settings[sys.argv[1]] = sys.argv[2]
time.sleep(0.03)
file.write_text(json.dumps(settings))
