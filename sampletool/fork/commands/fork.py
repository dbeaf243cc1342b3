"""Create a project of your own: the kit, chosen parts, and an example to replace."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from ...kit.completion import offering
from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import InvalidValues, Mistake, ProgramNotFound, did_you_mean
from ...kit.contract.mistyped import check_name, check_path
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption, checked_by
from ...kit.program import PACKAGE
from ..choice import DEFAULT_AUTHOR, DEFAULT_DESCRIPTION, Choice, CiService, KitSource
from ..errors import Bz2Missing, DirectoryNotFree, GitFailed
from ..kit_requirement import requirement_of
from ..names import mistakes_in_names
from ..project import new_project, offered_parts
from ..source import CHECKOUT, IS_WHEEL, source_files
from ..writing import refuse_used_directory, write_project

spec = CommandSpec(
    effect="files",
    errors=(Bz2Missing, DirectoryNotFree, GitFailed, ProgramNotFound),
    examples=("fork acme", "fork acme-stock --command stock --to stock"),
)

_MAX_LINE_CHARACTERS = 100
_MAX_URL_CHARACTERS = 200
_URL = re.compile(r"https?://[^\s\"'\\<>]+")
_PUBLISHING_URL = "https://docs.pypi.org/trusted-publishers/"


@dataclass(frozen=True)
class Created:
    """The new project."""

    effect: Effect
    directory: str
    files: list[str]
    is_committed: bool
    """Whether the files are in a first commit. In a dry run, whether they would be is unknown."""
    next: list[str]
    """The commands to run next."""
    to_do: list[str]
    """What to do before the project is published."""

    def lines(self) -> list[str]:
        """Return what a person sees."""
        lines = [f"{len(self.files)} files in {self.directory}. Next:"]
        lines += [f"  {step}" for step in self.next]
        if self.to_do:
            lines.append("To do before you publish:")
            lines += [f"  * {task}" for task in self.to_do]
        return lines


def mistakes_in(choice: Choice, directory: Path, constraints: str) -> list[Mistake]:
    """Return everything that is wrong with the options, except for --kit-from.

    `constraints` is the text of constraints.txt, which pins the packages that a project installs.
    """
    mistakes = mistakes_in_names(choice, constraints)
    unknown_parts = choice.parts - set(offered_parts())
    for part in sorted(unknown_parts):
        mistakes.append(_unknown_part(part))
    mistakes += _mistakes_in_texts(choice)
    mistakes += _mistakes_in_urls(choice)
    # In a wheel, CHECKOUT is site-packages, which does not look like a project.
    if not IS_WHEEL and directory.is_relative_to(CHECKOUT):
        mistakes.append(
            Mistake(
                param="--to",
                code="INVALID_VALUE",
                message=f"{directory} is inside of the checkout that the project is created from",
                value=str(directory),
                suggestion=f"Choose a directory next to it: --to ../{choice.name}",
            )
        )
    return mistakes


def _unknown_part(part: str) -> Mistake:
    """Return the mistake of a user who has asked for a part that does not exist."""
    offered = offered_parts()
    hint = did_you_mean(part, offered)
    if not hint:
        hint = f"The parts are {', '.join(offered)}."
    return Mistake(
        param="--with",
        code="INVALID_VALUE",
        message=f"There is no part {part!r}",
        value=part,
        suggestion=hint,
    )


def _mistakes_in_texts(choice: Choice) -> list[Mistake]:
    """Return what is wrong with the texts that go into the metadata of the project."""
    text_by_option = {"--author": choice.author, "--description": choice.description}
    # By default, the license holder is the author. One mistake is then reported only once.
    if choice.license_holder != choice.author:
        text_by_option["--license-holder"] = choice.license_holder
    mistakes = []
    for option, text in text_by_option.items():
        is_one_line = text.isprintable() and len(text) <= _MAX_LINE_CHARACTERS
        # git refuses an author without a letter, such as ".".
        has_letters = any(char.isalnum() for char in text)
        if not is_one_line or not has_letters:
            mistake = Mistake(
                param=option,
                code="INVALID_VALUE",
                message=f"Invalid value for {option}: {text!r}",
                value=text,
                suggestion=f"Use one line of text, with at most {_MAX_LINE_CHARACTERS} characters.",
            )
            mistakes.append(mistake)
    return mistakes


def _mistakes_in_urls(choice: Choice) -> list[Mistake]:
    """Return what is wrong with the addresses of the project. Each may be empty."""
    url_by_option = {"--repository": choice.repository, "--documentation": choice.documentation}
    mistakes = []
    for option, url in url_by_option.items():
        is_url = _URL.fullmatch(url) is not None and len(url) <= _MAX_URL_CHARACTERS
        if url and not is_url:
            mistake = Mistake(
                param=option,
                code="INVALID_VALUE",
                message=f"Invalid value for {option}: {url!r} is not a URL",
                value=url,
                suggestion=f"Use a URL such as https://example.org/{choice.name}.",
            )
            mistakes.append(mistake)
    return mistakes


def read_kit_requirement(kit: KitSource, kit_from: str, directory: Path) -> str:
    """Return the requirement that brings the kit, or "" if the project contains the kit.

    Raise InvalidValues if the two options do not fit together, or if `kit_from` is wrong.
    """
    if kit == "vendored":
        if not kit_from:
            return ""
        problem = "--kit-from needs --kit dependency"
        hint = "Pass --kit dependency as well, or leave --kit-from out."
    elif not kit_from:
        problem = "--kit dependency needs --kit-from"
        hint = f"Pass, for example, --kit-from '{PACKAGE}>=0.3', the URL of a wheel, or its path."
    else:
        try:
            return requirement_of(kit_from, directory)
        except ValueError as error:
            problem = f"Invalid value for --kit-from: {error}"
            hint = f"Pass, for example, '{PACKAGE}>=0.3', the URL of a wheel, or its path."
    raise InvalidValues(Mistake("--kit-from", "INVALID_VALUE", problem, kit_from, hint))


def tasks_before_publishing(choice: Choice) -> list[str]:
    """Return what is still a placeholder, and what only the owner can set up."""
    module = f"{choice.package}/__init__.py"
    tasks = []
    if choice.description == DEFAULT_DESCRIPTION:
        tasks.append(f"Describe the tool in {module}, README.md and pyproject.toml.")
    if choice.author == DEFAULT_AUTHOR:
        tasks.append("Set the author in pyproject.toml.")
    if choice.license_holder == DEFAULT_AUTHOR:
        tasks.append("Set the copyright holder in LICENSE.")
    if not choice.repository:
        tasks.append(f"Set REPOSITORY in {module}, and [project.urls] in pyproject.toml.")
    if choice.kit_requirement.startswith(f"{PACKAGE} @ file:"):
        tasks.append("In pyproject.toml, require the kit from an index or a URL, not from a file.")
    if choice.ci == "github":
        tasks.append(f"Let your index trust release.yml: {_PUBLISHING_URL}")
        tasks.append("If you write documentation, publish it yourself: no workflow does that.")
    return tasks


def next_steps(choice: Choice, directory: Path, *, is_committed: bool) -> list[str]:
    """Return the commands to run next."""
    steps = [f"cd {quote(str(directory))}"]
    if not is_committed:
        # Nothing was committed because git does not know who the author is. The user tells git
        # once, for all repositories, and then commits.
        steps += [
            'git config --global user.name "YOUR NAME"',
            "git config --global user.email YOU@EXAMPLE.ORG",
            "git commit --message=Begin",
        ]
    return [*steps, "make check test", f".venv/bin/{choice.command} --help"]


def command(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            callback=checked_by(check_name),
            help="Name of the project and of its Python package, for example acme-stock.",
        ),
    ],
    typed: Annotated[
        str,
        typer.Option(
            "--command",
            metavar="CMD",
            callback=checked_by(check_name),
            help="Set the command that users type to run the tool.",
            show_default="NAME",
        ),
    ] = "",
    to: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            callback=checked_by(check_path),
            help="Create the project in this directory. It must be new or empty.",
            show_default="./NAME",
        ),
    ] = "",
    parts: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="PART,...",
            autocompletion=offering(lambda _: offered_parts()),
            help="Also copy these parts of this tool, with their tests, for example state,lab.",
            show_default="none",
        ),
    ] = "",
    kit: Annotated[
        KitSource,
        typer.Option(
            help="Copy the kit into the project (vendored), or install it as a package.",
        ),
    ] = "vendored",
    kit_from: Annotated[
        str,
        typer.Option(
            metavar="REQUIREMENT",
            help="Install the kit from this requirement or wheel. Needed with --kit dependency.",
        ),
    ] = "",
    author: Annotated[
        str,
        typer.Option(help="Set the author of the project."),
    ] = DEFAULT_AUTHOR,
    description: Annotated[
        str,
        typer.Option(help="Describe the project in one line."),
    ] = DEFAULT_DESCRIPTION,
    license_holder: Annotated[
        str,
        typer.Option(help="Set the copyright holder in LICENSE.", show_default="the author"),
    ] = "",
    repository: Annotated[
        str,
        typer.Option(metavar="URL", help="Set the URL of the source repository."),
    ] = "",
    documentation: Annotated[
        str,
        typer.Option(metavar="URL", help="Set the URL of the documentation."),
    ] = "",
    ci: Annotated[
        CiService,
        typer.Option(help="Add workflows that check and release the project on GitHub."),
    ] = "none",
    dry_run: DryRunOption = False,
) -> Created:
    """Create a command-line tool of your own, based on this one.

    The new project is a git repository. It contains the code that all commands share, which is
    called the kit, and a small example that you replace with your own commands. To copy parts of
    this tool too, pass --with.

    If the directory already contains anything, the command fails and changes nothing.
    """
    context: Context = ctx.obj
    # Unlike Path.resolve(), this does not fail if two links lead to each other.
    directory = Path(os.path.realpath(context.cwd / (to or name)))
    choice = Choice(
        name=name,
        command=typed or name,
        parts=frozenset(part for part in parts.split(",") if part),
        author=author,
        description=description,
        license_holder=license_holder or author,
        repository=repository,
        documentation=documentation,
        ci=ci,
        kit=kit,
        kit_requirement=read_kit_requirement(kit, kit_from, context.cwd),
    )
    source = source_files()
    mistakes = mistakes_in(choice, directory, source["constraints.txt"].decode())
    if mistakes:
        raise InvalidValues(*mistakes)
    refuse_used_directory(directory)
    files = new_project(source, choice)
    is_committed = True
    if not dry_run:
        is_committed = write_project(context, files, directory)
    return Created(
        effect="created",
        directory=str(directory),
        files=list(files),
        is_committed=is_committed,
        next=next_steps(choice, directory, is_committed=is_committed),
        to_do=tasks_before_publishing(choice),
    )
