"""Write the man pages into a directory: `python -m acme.kit.manual DIRECTORY`."""

import sys
from pathlib import Path

from ..contract.errors import ExitStatus
from .man_pages import build_man_pages

_USAGE = f"Usage: python -m {__package__} DIRECTORY\n"


def _write_man_pages(directory: Path) -> None:
    """Write every man page into the directory, which is created if it is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    for file_name, content in build_man_pages().items():
        (directory / file_name).write_text(content)


def main(args: list[str]) -> int:
    """Write the man pages, and return the exit code."""
    if len(args) != 1:
        sys.stderr.write(_USAGE)
        return ExitStatus.USAGE
    _write_man_pages(Path(args[0]))
    return ExitStatus.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
