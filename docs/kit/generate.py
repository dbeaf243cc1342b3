"""Write the pages and pictures about the kit itself. `make pages` calls this.

They are written only where the kit is developed: no other project has this folder.
"""

from pathlib import Path

from docs.kit import picture
from docs.kit.guarantees import pages
from docs.kit.house import svg

_KIT_DOCS = Path(__file__).parent


def main() -> None:
    """Draw the picture of the terminal. It is not compared, because drawing it runs commands."""
    picture.main()


def made() -> dict[Path, str]:
    """Return the content of the other pages and pictures, by their paths."""
    return {**pages(), _KIT_DOCS / "house.svg": svg()}
