"""A lock file made with O_EXCL: nothing is lost, but losers get prose, and a killed holder blocks all."""

import json
import os
import sys
import time
from pathlib import Path

file = Path(os.environ["HOME"]) / "settings.json"
if sys.argv[1] == "get":
    sys.stdout.write(json.loads(file.read_text())[sys.argv[2]])
    sys.exit()
lock = file.with_suffix(".lock")
try:
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    sys.exit("error: another process is writing, try again later")
settings = json.loads(file.read_text()) if file.exists() else {}
settings[sys.argv[2]] = sys.argv[3]
time.sleep(0.02)
file.with_suffix(".new").write_text(json.dumps(settings))
file.with_suffix(".new").rename(file)
lock.unlink()
