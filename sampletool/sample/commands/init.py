"""Create a small workspace that builds, tests and has data to process."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...kit.context import PATIENT_WAIT_SECONDS, Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.file_errors import OutputExists
from ...kit.contract.library_errors import from_library_error
from ...kit.contract.mistyped import check_path
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption, checked_by
from ...kit.places import home_directory
from ...kit.program import PROGRAM, WORKSPACE_FILE
from ...kit.safety.atomic_file import create, sweep
from ...kit.safety.errors import UnsafePath
from ..output import lock_path

spec = CommandSpec(
    effect="files",
    errors=(OutputExists,),
    locks=("output",),
    examples=("init demo",),
)

_EXAMPLE = Path(__file__).parents[1] / "example"


@dataclass(frozen=True)
class Created:
    """The workspace."""

    effect: Effect
    directory: str
    files: list[str]

    def lines(self) -> list[str]:
        """Return what a person sees."""
        if self.effect == "created":
            first = f"Created a workspace with {len(self.files)} files in {self.directory}."
        else:
            first = f"{self.directory} is such a workspace already."
        return [f"{first} To see what to try, read TRY.md there."]


def create_workspace(context: Context, directory: Path, *, dry_run: bool) -> Created:
    """Create the files of the example. Raise OutputExists if something else is in their place.

    A file that is already as it should be stays, so that a command that was killed can be repeated.
    """
    contents = _example_files()
    missing = _missing_files(directory, contents)
    # The workspace file comes last: a directory that has it has the other files, too.
    names = sorted(contents, key=lambda name: (name == WORKSPACE_FILE, name))
    if dry_run and missing:
        _refuse_impossible(directory)
    if not dry_run:
        directory.mkdir(parents=True, exist_ok=True)
        lock = lock_path(directory / WORKSPACE_FILE)
        with context.hold(lock, f"output {directory}", "exclusive", PATIENT_WAIT_SECONDS):
            # Another command may have created some of them while this one waited.
            missing = _missing_files(directory, contents)
            for name in names:
                path = directory / name
                path.parent.mkdir(exist_ok=True)
                sweep(path)
                if name in missing:
                    create(path, contents[name])
    return Created("created" if missing else "unchanged", str(directory), names)


def _example_files() -> dict[str, bytes]:
    """Return the content of each file, by its path in the workspace."""
    contents = {}
    for path in _EXAMPLE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            contents[str(path.relative_to(_EXAMPLE))] = path.read_bytes()
    return contents


def _missing_files(directory: Path, contents: dict[str, bytes]) -> set[str]:
    """Return the files that do not exist yet. Raise OutputExists if something is in the way."""
    missing = set()
    in_the_way = set()
    for name, content in contents.items():
        path = directory / name
        if not os.path.lexists(path):
            missing.add(name)
        elif not _has_content(path, content):
            in_the_way.add(name)
        parent = os.path.dirname(name)
        if os.path.lexists(directory / parent) and not _is_usable(directory, parent):
            in_the_way.add(parent or ".")
    if in_the_way:
        found = f"{', '.join(sorted(in_the_way))} is in the way"
        hint = "Choose an empty or a new directory."
        raise OutputExists(str(directory), found=found, suggestion=hint)
    return missing


def _has_content(path: Path, content: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def _is_usable(directory: Path, parent: str) -> bool:
    """Return whether files can be created there. The user may name a link, but none is in it."""
    path = directory / parent
    return path.is_dir() and (parent == "" or not path.is_symlink())


def refuse_wide_directory(directory: Path) -> None:
    """Raise ToolError if the directory is the root directory or the home directory itself.

    A workspace there would contain every directory below it: `config set` anywhere in the home
    directory would change its settings instead of those of the user.
    """
    real_path = Path(os.path.realpath(directory))
    home = home_directory()
    if real_path == real_path.parent:
        reason = "it is the root directory, so every directory would be in this workspace"
    elif home is not None and real_path == Path(os.path.realpath(home)):
        reason = "it is your home directory, so every directory in it would be in this workspace"
    else:
        return
    error = from_library_error(UnsafePath(str(directory), reason))
    raise error.with_hint(
        f"Name a new directory, for example `{PROGRAM} init demo`. "
        "To use this directory anyway, add --force."
    )


def _refuse_impossible(directory: Path) -> None:
    """Raise OSError if nothing can be created in this directory, or it cannot be created itself.

    A dry run must not try it. So this asks the system about the nearest directory that exists. As
    root, everything seems to be possible in /proc and /sys.
    """
    existing = directory
    while not _exists(existing):
        existing = existing.parent
    if os.statvfs(existing).f_flag & os.ST_RDONLY:
        raise _os_error(errno.EROFS, directory)
    if not os.access(existing, os.W_OK | os.X_OK):
        raise _os_error(errno.EACCES, existing)
    longest_name = os.pathconf(existing, "PC_NAME_MAX")
    for name in directory.relative_to(existing).parts:
        if len(os.fsencode(name)) > longest_name:
            raise _os_error(errno.ENAMETOOLONG, directory)


def _exists(path: Path) -> bool:
    """Return whether the path exists. Raise OSError if it never can, for example below a file."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _os_error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


def command(
    ctx: typer.Context,
    directory: Annotated[
        str,
        typer.Argument(
            metavar="[DIR]",
            callback=checked_by(check_path),
            help="Create the workspace in this directory, and the directory if necessary.",
        ),
    ] = ".",
    force: Annotated[
        bool,
        typer.Option("--force", help="Allow the root directory and the home directory."),
    ] = False,
    dry_run: DryRunOption = False,
) -> Created:
    """Create a small workspace to try things in.

    It has targets, checks and data, and needs nothing but Python. Existing files are not replaced.
    """
    context: Context = ctx.obj
    is_name = directory.isprintable() and not os.path.basename(directory).startswith("-")
    if not directory or not is_name:
        raise UnsafePath(directory, "it is not a name for a directory")
    path = context.cwd / directory
    if not force:
        refuse_wide_directory(path)
    return create_workspace(context, path, dry_run=dry_run)
