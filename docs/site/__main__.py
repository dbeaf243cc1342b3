"""`make docs`: builds the site into build/site. A warning, such as a link that leads nowhere, is an error."""

import sys
from pathlib import Path

from sphinx.cmd.build import main as build

DOCS = Path(__file__).parents[1]
SITE = DOCS.parent / "build" / "site"


def main() -> int:
    status = build(["-q", "-n", "-W", "--keep-going", "-j", "auto", "-b", "html", str(DOCS), str(SITE)])
    if status == 0:
        sys.stdout.write(f"{SITE / 'index.html'}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
