"""Make a project of your own: the kit, chosen parts, and an example to replace."""

import keyword
import os
import re
import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal, NamedTuple

import typer

from ...kit.completion import offering
from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import InvalidValues, Mistake, ProgramNotFound, did_you_mean
from ...kit.contract.file_errors import OutputExists
from ...kit.contract.mistyped import check_name, check_path
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption, checked_by
from ...kit.program import PACKAGE
from ..errors import GitFailed
from ..project import Choice, offered_parts, project
from ..source import IS_WHEEL, TOP, source_files
from ..writing import must_be_free, write

spec = CommandSpec(
    effect="files",
    errors=(OutputExists, GitFailed, ProgramNotFound),
    examples=("fork acme", "fork acme-stock --command stock --to stock"),
)

_NAME = re.compile(r"[a-z](-?[a-z0-9]){0,39}")
_NAMED, _IN = checked_by(check_name), checked_by(check_path)
_PARTS = offering(lambda _: offered_parts())
_OF_SHELLS = """alias bg break builtin case cd command continue do done echo esac eval exec exit export false fg fi
function jobs kill let local printf pwd read return select set shift source test then time trap true
type umask unset until wait"""
_OF_PROJECTS = "ci coverage git github hypothesis make mypy pip pyproject pytest python python3 ruff uv venv"
"""A script in `.venv/bin`, or what is read as a settings file or a directory of the command: `ruff.toml`, `.venv/`."""


class Made(NamedTuple):
    effect: Effect
    directory: str
    files: list[str]
    next: list[str]

    def lines(self) -> list[str]:
        return [f"{len(self.files)} files in {self.directory}. Next:", *(f"  {step}" for step in self.next)]


def installed_modules() -> set[str]:
    """Return every name at the top of a directory with installed packages, modules and packages among them.

    Do not ask `importlib.metadata`: it reads the list of files of each package, which took 50 ms of every call.
    """
    modules: set[str] = set()
    for folder in sys.path:
        try:
            names = os.listdir(folder)
        except OSError:  # Python, too, passes over what is missing, is a zip file or cannot be read
            continue
        has_packages = any(name.endswith((".dist-info", ".egg-info")) for name in names)
        if has_packages:
            modules.update(name.partition(".")[0] for name in names)
    return modules


def mistakes_in(choice: Choice, directory: Path, pins: str) -> list[Mistake]:
    """Everything that is wrong, at once."""
    found: list[Mistake] = []
    modules = {"tests", "docs", "kit", "build", "dist", PACKAGE, *sys.stdlib_module_names, *installed_modules()}
    modules |= {pin.replace("-", "_") for pin in re.findall(r"^[\w-]+", pins, re.MULTILINE)}
    words = {*_OF_SHELLS.split(), *_OF_PROJECTS.split()}
    names = {choice.command: ("--command", words), choice.name: ("NAME", modules | words)}
    for name, (param, taken) in names.items():
        if not _NAME.fullmatch(name):
            hint = "Give small letters, digits and single dashes between them, such as acme-stock."
            found.append(Mistake(param, "INVALID_VALUE", f"{name!r} cannot be a name", name, hint))
        elif keyword.iskeyword(name) or name.replace("-", "_") in taken:
            hint = f"Choose another, such as my-{name}."
            found.append(Mistake(param, "NAME_TAKEN", f"something else is called {name}", name, hint))
    for part in sorted(choice.parts - {*offered_parts()}):
        hint = did_you_mean(part, offered_parts()) or f"There are {', '.join(offered_parts())}."
        found.append(Mistake("--with", "INVALID_VALUE", f"there is no part {part!r}", part, hint))
    lines = {choice.license_holder: "--license-holder", choice.author: "--author", choice.description: "--description"}
    for text, flag in lines.items():
        if not (text.isprintable() and any(map(str.isalnum, text)) and len(text) <= 100):  # git takes no "." for a name
            found.append(Mistake(flag, "INVALID_VALUE", f"{flag} is not one line of words, of at most 100 characters"))
    if not IS_WHEEL and directory.is_relative_to(TOP):
        problem = f"{directory} is inside the checkout that it is made from"
        found.append(Mistake("--to", "INVALID_VALUE", problem, str(directory), f"Give --to ../{choice.name}."))
    return found


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", callback=_NAMED, help="Of project and package: acme-stock.")],
    typed: Annotated[str, typer.Option("--command", metavar="CMD", callback=_NAMED, help="To type; else NAME.")] = "",
    to: Annotated[str, typer.Option(metavar="DIR", callback=_IN, help="A new or empty directory; else ./NAME.")] = "",
    parts: Annotated[
        str, typer.Option("--with", metavar="PART,...", autocompletion=_PARTS, help="Parts to take.")
    ] = "",
    author: Annotated[str, typer.Option(help="Who writes it.")] = "The maintainers",
    description: Annotated[str, typer.Option(help="What it does, in one line.")] = "Does one thing, for many at once",
    license_holder: Annotated[str, typer.Option(help="Whose it is; else the author's.")] = "",
    ci: Annotated[Literal["github", "none"], typer.Option(help="Which workflows it gets.")] = "none",
    dry_run: DryRunOption = False,
) -> Made:
    """Make a tool of your own out of this one.

    A new directory with the kit, the parts that you choose, an example to replace, and the first commit.
    """
    context: Context = ctx.obj
    directory = (context.cwd / (to or name)).resolve()
    taken = frozenset(filter(None, parts.split(",")))
    choice = Choice(name, typed or name, taken, author, description, license_holder or author, ci)
    files = source_files()
    if mistakes := mistakes_in(choice, directory, files["constraints.txt"].decode()):
        raise InvalidValues(*mistakes)
    must_be_free(directory)
    files = project(files, choice)
    if not dry_run:
        write(context, files, directory, author)
    steps = [f"cd {quote(str(directory))}", "make check test", f".venv/bin/{choice.command} --help"]
    return Made("created", str(directory), [*files], steps)
