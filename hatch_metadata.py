"""The metadata of a package that depends on the version: its addresses, and a README for an index.

hatchling loads this file when it builds a package. The address of the repository is REPOSITORY, in
`__init__.py` of the package, and in no other file. In the repository, the links in the README are
relative.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = r"(!\[[^\]]*\]\()(?!https?:|#)([^)]+\))"
"""An image with a relative link. The groups are what is before the link, and the link."""

_LINK = r"(\]\()(?!https?:|#)([^)]+\))"


class Metadata(MetadataHookInterface):
    """The hook that hatchling calls. It finds the class by its base class."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README and the addresses."""
        constants = Path(self.root, metadata["name"], "__init__.py").read_text()
        repository = _constant("REPOSITORY", constants)
        version = _constant("__version__", constants)
        if "dev" in version:
            tag = "main"
        else:
            tag = f"v{version}"

        readme = Path(self.root, "README.md").read_text()
        # Images first: afterwards, their links are not relative any more.
        readme = re.sub(_IMAGE, rf"\1{repository}/raw/{tag}/\2", readme)
        readme = re.sub(_LINK, rf"\1{repository}/blob/{tag}/\2", readme)
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
        metadata["urls"] = {
            "Repository": repository,
            "Issues": f"{repository}/issues",
            "Documentation": f"{repository}/blob/{tag}/docs/index.md",
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        }


def _constant(name: str, source: str) -> str:
    """Return the value of a constant. The package is not imported: it may need what is missing."""
    match = re.search(rf'^{name} = "(.+)"$', source, re.MULTILINE)
    if match is None:
        raise ValueError(f"{name} is missing in __init__.py")
    return match[1]
