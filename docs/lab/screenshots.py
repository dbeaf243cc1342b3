"""Make the screenshots on the explorer's page: `python -m docs.lab.screenshots`.

They are in the repository, because only Chromium can make them. Make them again after a change of
the explorer's look.
"""

import base64
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from docs.lab.play import PLAY_FOLDER, add_to_site
from tests.lab.explorer.browser import Browser, browsing

_HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class _Screenshot:
    """What is on a picture, and the screen on which it is shown."""

    name: str
    page: str
    is_end_shown: bool
    width: int
    height: int
    theme: str


_SCREENSHOTS = (
    _Screenshot(
        name="explorer-wide",
        page="lost-config-update.html#lost-config-update/naive/A1.B1.A2",
        is_end_shown=False,
        width=1280,
        height=860,
        theme="light",
    ),
    _Screenshot(
        name="explorer-wide-dark",
        page="stale-lock.html#stale-lock/wrong-reclaim",
        is_end_shown=True,
        width=1280,
        height=1000,
        theme="dark",
    ),
    _Screenshot(
        name="explorer-phone",
        page="lost-config-update.html#lost-config-update/naive/A1.B1",
        is_end_shown=False,
        width=390,
        height=844,
        theme="light",
    ),
    _Screenshot(
        name="explorer-phone-dark",
        page="lost-config-update.html#lost-config-update/naive",
        is_end_shown=True,
        width=390,
        height=844,
        theme="dark",
    ),
)


def main() -> None:
    """Write the pictures next to the page, and print their paths."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        site = Path(directory, "site")
        add_to_site(site)
        with browsing(Path(directory, "profile")) as browser:
            for screenshot in _SCREENSHOTS:
                picture = _HERE / f"{screenshot.name}.webp"
                picture.write_bytes(_take(browser, site, screenshot))
                sys.stdout.write(f"{picture}\n")


def _take(browser: Browser, site: Path, screenshot: _Screenshot) -> bytes:
    browser.show_as(
        width=screenshot.width,
        height=screenshot.height,
        theme=screenshot.theme,
        motion="reduce",
    )
    browser.open(f"{(site / PLAY_FOLDER).as_uri()}/{screenshot.page}")
    if screenshot.is_end_shown:
        browser.press("s")
    else:
        # Without the header, more of the race is on the picture.
        browser.run("document.querySelector('.story').scrollIntoView()")
    picture = browser.ask("Page.captureScreenshot", format="webp", quality=85)
    return base64.b64decode(picture["data"])


if __name__ == "__main__":
    main()
