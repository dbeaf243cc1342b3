"""Raise the revision of the kit after a change: this is what `make revision` runs.

Projects compare the integer in the file REVISION of two kits to learn which one is newer. So two
kits with different bytes must not have the same revision. kit_revision.txt, next to this file, has
the checksum of the kit that had the present revision when it was raised.
"""

import sys
from hashlib import sha256
from pathlib import Path

from sampletool.kit.checksums import KIT_FOLDER, checksums_text, kit_files

REVISION_FILE = KIT_FOLDER / "REVISION"
RECORD = Path(__file__).with_name("kit_revision.txt")


def main() -> None:
    """Raise the revision, unless the kit is the one that has it."""
    if is_current():
        sys.stdout.write(f"The kit has not changed since revision {revision()}.\n")
        return
    REVISION_FILE.write_text(f"{revision() + 1}\n")
    RECORD.write_text(f"{checksum()}\n")
    sys.stdout.write(f"The kit has revision {revision()} now. Commit it with your change.\n")


def revision() -> int:
    """Return the revision of the kit."""
    return int(REVISION_FILE.read_text())


def is_current() -> bool:
    """Return whether the kit is as it was when its revision was raised."""
    return RECORD.read_text().strip() == checksum()


def checksum() -> str:
    """Return a checksum of all files of the kit, REVISION included."""
    return sha256(checksums_text(kit_files(KIT_FOLDER)).encode()).hexdigest()


if __name__ == "__main__":
    main()
