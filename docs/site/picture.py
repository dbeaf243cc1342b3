"""Make the picture that other sites show with a link to the site: `python -m docs.site.picture`.

It is a screenshot of preview.html. The picture is in the repository, because only Chromium can
take it. Take it again after a change of preview.html.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from docs.site.previews import PICTURE, PICTURE_SIZE, STATIC

_SOURCE = Path(__file__).parent / "preview.html"


def main() -> None:
    """Write the picture into the folder of static files, and print its path."""
    width, height = PICTURE_SIZE
    picture = STATIC / Path(PICTURE).name
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            f"--screenshot={picture}",
        ]
        command = ["chromium", *options, _SOURCE.as_uri()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sys.stdout.write(f"{picture}\n")


if __name__ == "__main__":
    main()
