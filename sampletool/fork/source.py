"""What a project is made from: the files of a checkout that git tracks, or those that an installed wheel carries."""

from pathlib import Path

from ..kit.program import PACKAGE
from .git import git

_CARRIED = Path(__file__).with_name("carried")
"""In a wheel: what lies beside the package in a checkout."""
TOP = Path(__file__).parents[2]
IS_WHEEL = _CARRIED.is_dir()


def source_files() -> dict[str, bytes]:
    """The content of each by its path in a checkout."""
    if IS_WHEEL:
        package = (path for path in (TOP / PACKAGE).rglob("*") if _CARRIED not in path.parents)
        found = {path.relative_to(TOP).as_posix(): path for path in package}
        found |= {path.relative_to(_CARRIED).as_posix(): path for path in _CARRIED.rglob("*")}
    else:
        found = {name: TOP / name for name in git(TOP, "ls-files", "-z").split("\0")}
    return {
        name: path.read_bytes()
        for name, path in sorted(found.items())
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    }
