"""A small workspace that builds, tests and has data to process."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sampletool.contract.answer import Effect
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.file_errors import OutputExists
from sampletool.contract.promise import Promise
from sampletool.options import DryRunOption
from sampletool.safety.places import WORKSPACE_FILE
from sampletool.wiring import Wiring

promise = Promise(
    effect="files",
    ends_with=(ExitStatus.CONFLICT, ExitStatus.PERMISSION, ExitStatus.NOT_FOUND),
    examples=("tool init demo",),
)

_EXAMPLE = Path(__file__).parents[1] / "domain" / "example"


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
    parents = {os.path.dirname(name) for name in names} - {""}
    in_the_way = [name for name in names if os.path.lexists(directory / name)]
    in_the_way += [name for name in sorted(parents) if (directory / name).is_symlink()]
    if in_the_way:
        raise OutputExists(str(directory), f"it has {', '.join(in_the_way)}", "Choose an empty or a new directory.")
    if not dry_run:
        _write({directory / name: contents[name] for name in names})
    return Made("created", str(directory), names)


def _write(contents: dict[Path, bytes]) -> None:
    """tool.toml comes last: what has one is whole."""
    written: list[Path] = []
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
    except BaseException as error:
        for done in written:
            done.unlink()
        if isinstance(error, FileExistsError):
            raise OutputExists(str(path), "somebody else has just made it", "Choose a new directory.") from error
        raise


def command(
    ctx: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where; made if it is not there.")] = Path(),
    dry_run: DryRunOption = False,
) -> Made:
    """Make a small workspace to try everything in.

    It has targets, checks and data, and needs nothing but Python. Nothing is overwritten.
    """
    wiring: Wiring = ctx.obj
    return make(wiring.cwd / directory, dry_run=dry_run)
