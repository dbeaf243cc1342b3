"""Keeps when it began to run, beside the key."""

import os
import sys
import time
from pathlib import Path

Path(os.environ["HOME"], sys.argv[1]).write_text(str(time.monotonic()))
