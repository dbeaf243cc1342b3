"""`make docs`: build the site in build/site. A warning, such as a broken link, is an error."""

import sys
from pathlib import Path

from sphinx.cmd.build import main as build

_DOCS = Path(__file__).parents[1]
_SITE = _DOCS.parent / "build" / "site"


def main() -> int:
    """Build the site, print the path of its front page, and return the exit code."""
    options = ["-q", "-n", "-W", "--keep-going", "-j", "auto", "-b", "html"]
    exit_code = build([*options, str(_DOCS), str(_SITE)])
    if exit_code == 0:
        sys.stdout.write(f"{_SITE / 'index.html'}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
