"""What many tools do: read the file, change it in memory, write it back. Nothing keeps two of them apart."""

import json
import os
import sys
import time
from pathlib import Path

file = Path(os.environ["HOME"]) / "naive.json"
settings = json.loads(file.read_text()) if file.exists() else {}
if sys.argv[1] == "get":
    sys.stdout.write(settings[sys.argv[2]])
else:
    with file.with_suffix(".log").open("a") as log:
        log.write("read\n")
    settings[sys.argv[2]] = sys.argv[3]
    time.sleep(0.03)
    file.write_text(json.dumps(settings))
