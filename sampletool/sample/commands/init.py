"""A small workspace that builds, tests and has data to process."""

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
class Made:
    effect: Effect
    directory: str
    files: list[str]

    def lines(self) -> list[str]:
        first = f"Made a workspace of {len(self.files)} files in {self.directory}"
        return [
            f"{first if self.effect == 'created' else f'{self.directory} is such a workspace already'}. There, try:",
            "  tool build            twice: the second time there is nothing to do",
            "  tool test             checks what was built",
            "  tool process --input data/sales.csv",
            "  tool config set key1 val1",
        ]


def make(context: Context, directory: Path, *, dry_run: bool) -> Made:
    """Nothing that is there is replaced; a file that is as it should be is left, so that a killed call can be repeated.

    tool.toml comes last: a directory that has one is whole.
    """
    found = [path for path in _EXAMPLE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    contents = {str(path.relative_to(_EXAMPLE)): path.read_bytes() for path in found}
    names = sorted(contents, key=lambda name: (name == WORKSPACE_FILE, name))
    missing = _missing(directory, contents)
    if dry_run and missing:
        _refuse_impossible(directory)
    if not dry_run:
        directory.mkdir(parents=True, exist_ok=True)
        with context.hold(
            lock_path(directory / WORKSPACE_FILE), f"output {directory}", "exclusive", PATIENT_WAIT_SECONDS
        ):
            missing = _missing(directory, contents)
            for name in names:
                (directory / name).parent.mkdir(exist_ok=True)
                sweep(directory / name)
                if name in missing:
                    create(directory / name, contents[name])
    return Made("created" if missing else "unchanged", str(directory), names)


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
        f"Name a new directory, for example `{PROGRAM} init demo`. To use this directory anyway, add --force."
    )


def _missing(directory: Path, contents: dict[str, bytes]) -> set[str]:
    """Which files are not there; OUTPUT_EXISTS if something else is in the place of one, or of a directory."""
    there = {name for name in contents if os.path.lexists(directory / name)}
    in_the_way = [name for name in there if not _has(directory / name, contents[name])]
    for name in {os.path.dirname(name) for name in contents}:
        path = directory / name
        if os.path.lexists(path) and (not path.is_dir() or (name and path.is_symlink())):
            in_the_way.append(name or ".")
    if in_the_way:
        what = f"{', '.join(sorted(in_the_way))} is in the way"
        raise OutputExists(str(directory), found=what, suggestion="Choose an empty or a new directory.")
    return contents.keys() - there


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


def _has(path: Path, content: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def command(
    ctx: typer.Context,
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", callback=checked_by(check_path), help="Where; made if it is not there.")
    ] = ".",
    force: Annotated[
        bool,
        typer.Option("--force", help="Allow the root directory and the home directory."),
    ] = False,
    dry_run: DryRunOption = False,
) -> Made:
    """Make a small workspace to try everything in.

    It has targets, checks and data, and needs nothing but Python. Nothing is overwritten.
    """
    context: Context = ctx.obj
    if not directory or not directory.isprintable() or os.path.basename(directory).startswith("-"):
        raise UnsafePath(directory, "that is not a name for a directory")
    path = context.cwd / directory
    if not force:
        refuse_wide_directory(path)
    return make(context, path, dry_run=dry_run)
