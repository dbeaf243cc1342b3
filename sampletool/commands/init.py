"""A small workspace that builds, tests and has data to process."""

import os
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.file_errors import OutputExists
from sampletool.contract.promise import Promise
from sampletool.safety.places import WORKSPACE_FILE
from sampletool.wiring import Wiring

promise = Promise(
    effect="files",
    ends_with=(ExitStatus.CONFLICT, ExitStatus.PERMISSION, ExitStatus.NOT_FOUND),
    examples=("tool init demo",),
)


@dataclass(frozen=True)
class Made:
    effect: str
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


def make(directory: Path, *, dry_run: bool = False) -> Made:
    """Every file or none; nothing that is there is replaced, not even by two who do this at once."""
    example = dict(_files_below(files("sampletool.domain") / "example"))
    names = sorted(example, key=lambda name: (name == WORKSPACE_FILE, name))
    parents = {str(Path(name).parent) for name in names} - {"."}
    in_the_way = [name for name in names if os.path.lexists(directory / name)]
    in_the_way += [name for name in sorted(parents) if (directory / name).is_symlink()]
    if in_the_way:
        raise OutputExists(str(directory), f"it has {', '.join(in_the_way)}", "Choose an empty or a new directory.")
    if not dry_run:
        _write(directory, {name: example[name].read_bytes() for name in names})
    return Made("created", str(directory), names)


def _write(directory: Path, contents: dict[str, bytes]) -> None:
    """tool.toml comes last: what has one is whole."""
    written: list[Path] = []
    try:
        for name, content in contents.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
    except BaseException as error:
        for path in written:
            path.unlink()
        if isinstance(error, FileExistsError):
            raise OutputExists(str(path), "somebody else has just made it", "Choose a new directory.") from error
        raise


def _files_below(directory: Traversable, above: str = "") -> list[tuple[str, Traversable]]:
    found = []
    for entry in directory.iterdir():
        if entry.is_dir():
            found += _files_below(entry, f"{above}{entry.name}/") if entry.name != "__pycache__" else []
        else:
            found.append((f"{above}{entry.name}", entry))
    return found


def command(
    ctx: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where; made if it is not there.")] = Path(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be made.")] = False,
) -> Made:
    """Make a small workspace with targets, checks and data, all runnable with nothing but Python. Never overwrites."""
    wiring: Wiring = ctx.obj
    if dry_run:
        wiring.meta["dry_run"] = True
    return make(wiring.cwd / directory, dry_run=dry_run)
