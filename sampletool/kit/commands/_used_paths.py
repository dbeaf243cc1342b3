"""Find the files and directories that the tool uses when it runs here."""

from dataclasses import dataclass
from pathlib import Path

from ..call_log import NAMES
from ..contract.text import MAX_SENTENCE_CHARACTERS, shorten
from ..places import config_file, session_root, state_directory
from ..program import WORKSPACE_DIRECTORY, WORKSPACE_FILE


@dataclass(frozen=True)
class UsedPath:
    """A file or directory that the tool reads or creates."""

    name: str
    path: str
    exists: bool


def find_used_paths(workspace: Path | None) -> list[UsedPath]:
    """Return the paths in use here. Those of a workspace are left out if there is none.

    Raise UnsafeDirectory if other users can write to the user's settings.
    """
    state = state_directory()
    paths = {
        "personal settings": config_file(),
        "state": state,
        "log of commands": state / NAMES[0],
        "locks of outputs": state / "locks",
        "sessions": session_root(),
    }
    if workspace is not None:
        own_directory = workspace / WORKSPACE_DIRECTORY
        paths |= {
            "workspace": workspace,
            "settings of the workspace": workspace / WORKSPACE_FILE,
            "files of the workspace": own_directory,
            "locks of the workspace": own_directory / "locks",
        }
    used_paths = []
    for name, path in paths.items():
        shown_path = shorten(str(path), MAX_SENTENCE_CHARACTERS)
        used_paths.append(UsedPath(name=name, path=shown_path, exists=path.exists()))
    return used_paths
