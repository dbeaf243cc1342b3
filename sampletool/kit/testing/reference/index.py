"""The first page of the reference: a list of all commands, and links to the other pages."""

from collections.abc import Iterator, Sequence
from importlib import import_module

from ...part_discovery import KIT_FOLDER_NAME
from ...program import PACKAGE, PROGRAM
from .command import Command
from .markdown import bullets, page

_ABOUT = (
    f"Each command of `{PROGRAM}` has its own page, which describes its arguments, options, output "
    f"and errors. To read most of this in a terminal, run `{PROGRAM} COMMAND --help`. If a program "
    f"needs it as JSON, use `{PROGRAM} manifest COMMAND`."
)
_TITLE_OF_KIT = "Settings, sessions, locks and the tool itself"
_COMMON_PAGES = (
    "[Options of every command](options.md)",
    "[Settings](settings.md)",
    "[Environment variables](environment.md)",
    "[Exit codes](exit-codes.md)",
    "[Errors](errors.md): what each error means, what to do, and whether to try again",
    "[JSON output](output.md): what every response contains",
)


def index_page(commands: Sequence[Command]) -> str:
    """Return the content of the page."""
    return page("Reference", _blocks(commands))


def _blocks(commands: Sequence[Command]) -> Iterator[str]:
    yield _ABOUT
    yield "What all commands have in common:"
    yield bullets(_COMMON_PAGES)
    for part, title in _titles(commands).items():
        yield f"## {title}"
        items = []
        for command in commands:
            if command.part == part:
                items.append(f"{command.link}: {command.described['summary']}")
        yield bullets(items)


def _titles(commands: Sequence[Command]) -> dict[str, str]:
    """Return the title of each part that has commands. The kit comes first.

    A part can have a TITLE in its `__init__.py`. Otherwise, its name is the title.
    """
    parts = sorted({command.part for command in commands})
    titles = {}
    if KIT_FOLDER_NAME in parts:
        parts.remove(KIT_FOLDER_NAME)
        titles[KIT_FOLDER_NAME] = _TITLE_OF_KIT
    for part in parts:
        module = import_module(f"{PACKAGE}.{part}")
        titles[part] = getattr(module, "TITLE", part)
    return titles
