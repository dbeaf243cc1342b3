"""The project of the developer: its directory, and what git knows about it.

Only the developer's commands use this module, such as upgrade.py. No command of the tool does.
"""

import subprocess
from pathlib import Path

from .program import PACKAGE, PACKAGE_DIRECTORY

ROOT = Path(PACKAGE_DIRECTORY).parent
"""The directory with pyproject.toml, the package of the program, `tests` and `docs`."""


def require_project() -> None:
    """End the program if the directory of the package is not a project.

    This happens if the kit is an installed package, and it is not known which program uses it.
    """
    if not (ROOT / "pyproject.toml").exists():
        raise SystemExit(
            f"{PACKAGE} is an installed package, not a project. To work on a program that depends "
            "on it, name the package of the program, for example KIT_PACKAGE=ledger."
        )


def run_git(*args: str, directory: Path = ROOT) -> str:
    """Run git in a directory, and return what it prints. End the program if git fails."""
    try:
        completed = subprocess.run(
            ["git", *args],  # noqa: S607 - the user's git
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise SystemExit("git is missing. Install it, then run the command again.") from None
    if completed.returncode != 0:
        raise SystemExit(f"git {args[0]} failed: {completed.stderr.strip()}")
    return completed.stdout


def tracked_files(directory: Path = ROOT) -> list[str]:
    """Return the paths of the files that git tracks."""
    output = run_git("ls-files", "-z", directory=directory)
    return [path for path in output.split("\0") if path]


def describe_os_error(error: OSError) -> str:
    """Return what failed, and the path if the error names one."""
    # A write to a full disk, for example, fails without the path of the file.
    if error.strerror is None:
        return str(error)
    if error.filename is None:
        return error.strerror
    return f"{error.strerror}: {error.filename}"


def has_uncommitted_changes() -> bool:
    """Return whether a file that git tracks differs from the last commit."""
    return run_git("status", "--porcelain", "--untracked-files=no") != ""
