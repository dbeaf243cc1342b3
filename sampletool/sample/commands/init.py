"""A small workspace that builds, tests and has data to process."""

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.file_errors import OutputExists, UnsafePath
from sampletool.kit.global_options import DryRunOption
from sampletool.kit.program import WORKSPACE_FILE

spec = CommandSpec(
    effect="files",
    errors=(OutputExists,),
    examples=("init demo",),
)

_EXAMPLE = Path(__file__).parents[1] / "example"


@dataclass(frozen=True)
class Made:
    effect: Effect
    directory: str
    files: list[str]

    def lines(self) -> list[str]:
        return [
            f"Made a workspace of {len(self.files)} files in {self.directory}. There, try:",
            "  tool build            twice: the second time there is nothing to do",
            "  tool test             checks what was built",
            "  tool process --input data/sales.csv",
            "  tool config set key1 val1",
        ]


def make(directory: Path, *, dry_run: bool) -> Made:
    """Every file or none; nothing that is there is replaced, not even by two who do this at once."""
    found = [path for path in _EXAMPLE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    contents = {str(path.relative_to(_EXAMPLE)): path.read_bytes() for path in found}
    names = sorted(contents, key=lambda name: (name == WORKSPACE_FILE, name))
    in_the_way = [name for name in names if os.path.lexists(directory / name)]
    for parent in {path for name in names for path in (directory / name).parents if path.is_relative_to(directory)}:
        if os.path.lexists(parent) and (not parent.is_dir() or (parent.is_symlink() and parent != directory)):
            in_the_way.append(str(parent.relative_to(directory)))
    if in_the_way:
        what = f"{', '.join(in_the_way)} is in the way"
        raise OutputExists(str(directory), found=what, suggestion="Choose an empty or a new directory.")
    if not dry_run:
        _write({directory / name: contents[name] for name in names})
    return Made("created", str(directory), names)


def _write(contents: dict[Path, bytes]) -> None:
    """tool.toml comes last: what has one is whole."""
    with ExitStack() as undo:
        for path, content in contents.items():
            for parent in reversed(path.parents):
                if not parent.exists():
                    parent.mkdir(exist_ok=True)
                    undo.callback(_remove_if_empty, parent)
            try:
                file = path.open("xb")
            except FileExistsError as error:
                found = "another call has just made it"
                raise OutputExists(str(path), found=found, suggestion="Choose a new directory.") from error
            undo.callback(path.unlink)
            with file:
                file.write(content)
        undo.pop_all()


def _remove_if_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def command(
    ctx: typer.Context,
    directory: Annotated[str, typer.Argument(metavar="[DIR]", help="Where; made if it is not there.")] = ".",
    dry_run: DryRunOption = False,
) -> Made:
    """Make a small workspace to try everything in.

    It has targets, checks and data, and needs nothing but Python. Nothing is overwritten.
    """
    context: Context = ctx.obj
    if not directory or not directory.isprintable() or os.path.basename(directory).startswith("-"):
        raise UnsafePath(directory, "that is not a name for a directory")
    return make(context.cwd / directory, dry_run=dry_run)
