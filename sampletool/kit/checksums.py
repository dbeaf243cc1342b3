"""Tell whether the kit is as it was when this project took it: `python -m acme.kit.checksums`.

`tool fork` and upgrades of the kit write the file CHECKSUMS into the kit. It has a line for each
file. Where the kit is developed, there is no such file, and nothing is compared.
"""

import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from .program import KIT_DIRECTORY

CHECKSUMS_NAME = "CHECKSUMS"

KIT_FOLDER = Path(KIT_DIRECTORY)
CHECKSUMS_FILE = KIT_FOLDER / CHECKSUMS_NAME


def main() -> int:
    """Print the files of the kit that were edited. Return the exit code."""
    edited = edited_files()
    if not edited:
        return 0
    sys.stderr.write(f"{describe_edited(edited)}\n")
    return 1


def describe_edited(paths: list[str]) -> str:
    """Return the message for a user who has edited these files of the kit."""
    listed_paths = ", ".join(f"kit/{path}" for path in paths)
    return (
        f"The kit was edited: {listed_paths}. An upgrade would lose your changes. "
        "Undo them with git, and put your code next to the kit instead."
    )


def edited_files() -> list[str]:
    """Return the files of the kit that were changed, added or deleted since CHECKSUMS was written.

    The paths are relative to the kit. If there is no CHECKSUMS, return an empty list.
    """
    if not CHECKSUMS_FILE.exists():
        return []
    return differing_files(CHECKSUMS_FILE.read_text(), kit_files(KIT_FOLDER))


def differing_files(checksums: str, contents: Mapping[str, bytes]) -> list[str]:
    """Return the paths of files that were changed, added or deleted since CHECKSUMS was written.

    `checksums` is the text of CHECKSUMS, and `contents` are the files as they are now.
    """
    lines_then = set(checksums.splitlines())
    lines_now = set(checksums_text(contents).splitlines())
    # A changed file has two different lines, and an added or a deleted one has a single line.
    differing_lines = lines_then ^ lines_now
    paths = set()
    for line in differing_lines:
        _checksum, _spaces, path = line.partition("  ")
        paths.add(path)
    return sorted(paths)


def checksums_text(contents: Mapping[str, bytes]) -> str:
    """Return the text of CHECKSUMS for these files of a kit, by their paths in the kit.

    Each line is a checksum, two spaces and a path, so `sha256sum --check` can read it as well.
    """
    lines = []
    for path, content in sorted(contents.items()):
        if path != CHECKSUMS_NAME:
            lines.append(f"{sha256(content).hexdigest()}  {path}\n")
    return "".join(lines)


def kit_files(folder: Path) -> dict[str, bytes]:
    """Return the content of each file of a kit, by its path in the kit. Bytecode is left out."""
    contents = {}
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            contents[path.relative_to(folder).as_posix()] = path.read_bytes()
    return contents


if __name__ == "__main__":
    sys.exit(main())
