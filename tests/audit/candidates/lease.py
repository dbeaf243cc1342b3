"""A lock file that is taken over when it is old. The error of a loser says when that will be."""

import json
import os
import sys
import time
from pathlib import Path

_LEASE_SECONDS = 0.8

file = Path(os.environ["HOME"]) / "settings.json"
temporary = file.with_name("new.json")
lock = file.with_suffix(".lock")
try:
    if time.time() - lock.stat().st_mtime > _LEASE_SECONDS:
        lock.unlink()
except FileNotFoundError:
    pass
try:
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    sys.stdout.write(
        json.dumps({"error": {"code": "BUSY", "retry_after_ms": 1000 * _LEASE_SECONDS}})
    )
    sys.exit(75)
settings = json.loads(file.read_text()) if file.exists() else {}
settings[sys.argv[1]] = sys.argv[2]
time.sleep(0.02)
temporary.write_text(json.dumps(settings))
temporary.rename(file)
lock.unlink()
