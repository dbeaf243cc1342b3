"""Raise the revision of the kit after a change: this is what `make revision` runs.

Projects compare the integer in the file REVISION of two kits to learn which one is newer. So two
kits with different bytes must not have the same revision. kit_revision.txt, next to this file, has
the checksum of the kit that had the present revision when it was raised.

A merge can take the lower one of two revisions, with the checksum that belongs to it. So the
revision is also compared with the highest one in the history of git.
"""

import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from sampletool.kit.checksums import KIT_FOLDER, checksums_text, kit_files

REVISION_FILE = KIT_FOLDER / "REVISION"
RECORD = Path(__file__).with_name("kit_revision.txt")


def main() -> None:
    """Raise the revision if the kit has changed, or if a merge has lowered the revision."""
    if is_current() and not is_lowered():
        sys.stdout.write(f"The kit has not changed since revision {revision()}.\n")
        return
    highest = max(revision(), highest_committed())
    REVISION_FILE.write_text(f"{highest + 1}\n")
    RECORD.write_text(f"{checksum()}\n")
    sys.stdout.write(f"The kit has revision {revision()} now. Commit it with your change.\n")


def revision() -> int:
    """Return the revision of the kit."""
    return int(REVISION_FILE.read_text())


def is_current() -> bool:
    """Return whether the kit is as it was when its revision was raised."""
    return RECORD.read_text().strip() == checksum()


def is_lowered() -> bool:
    """Return whether an earlier commit has a higher revision."""
    return revision() < highest_committed()


def highest_committed() -> int:
    """Return the highest revision in the history of the commit that is checked out.

    Return 0 if there is no history, for example in an unpacked sdist.
    """
    completed = subprocess.run(
        [
            *("git", "log", "--format=", "--patch", "--unified=0"),
            # Otherwise, git leaves out a branch whose revision a merge did not take.
            "--full-history",
            *("--", str(REVISION_FILE)),
        ],
        cwd=KIT_FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    # Each patch has a line "+37" for the revision 37. The output is empty if git fails.
    added = re.findall(r"^\+(\d+)$", completed.stdout, re.MULTILINE)
    return max(map(int, added), default=0)


def checksum() -> str:
    """Return a checksum of all files of the kit, REVISION included."""
    return sha256(checksums_text(kit_files(KIT_FOLDER)).encode()).hexdigest()


if __name__ == "__main__":
    main()
