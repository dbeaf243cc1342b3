"""Write the man pages into a directory: `python -m acme.kit.manual DIRECTORY`."""

import sys
from pathlib import Path

from .man_pages import build_man_pages

if __name__ == "__main__":
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for file_name, content in build_man_pages().items():
        (directory / file_name).write_text(content)
