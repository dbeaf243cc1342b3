"""A project of your own, as the content of each of its files: the kit, the chosen parts, and what is written for it.

Pure: files in, files out. Nothing in it speaks of the project that it is made from but LICENSE and a line of README.md.
"""

import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from .. import REPOSITORY
from ..kit.checksums import listing
from ..kit.contract.file_errors import EditRefused
from ..kit.part_discovery import part_names
from ..kit.parts import find_folders, remove_lines
from ..kit.program import PACKAGE, PROGRAM, __version__
from ..kit.rename import Names, rename_files
from ..kit.settings.toml_edit import CannotEdit, set_value

TEMPLATE = f"{PACKAGE}/fork/template/"
"""Below it lies what is written for the new project, with the names of this one."""
_FOLDERS = (f"{PACKAGE}/kit/", "tests/kit/", "docs/kit/")
_TAKEN = (f"{PACKAGE}/__main__.py", "tests/__init__.py", "tests/conftest.py", "docs/index.md",
          "constraints.txt", ".gitignore", "LICENSE")  # fmt: skip


class Choice(NamedTuple):
    """What the caller asks for."""

    name: str
    command: str
    parts: frozenset[str]
    author: str
    description: str
    license_holder: str
    ci: str


def offered_parts() -> list[str]:
    return [name for name in part_names() if name != "fork"]


def project(source: Mapping[str, bytes], choice: Choice) -> dict[str, bytes]:
    """The files of the new project, by their paths."""
    package = choice.name.replace("-", "_")
    left_out = {*part_names()} - choice.parts
    not_taken = tuple(f"{folder}/" for folder in find_folders(left_out, source))
    chosen = tuple(f"{folder}/" for folder in find_folders({*choice.parts}, source))
    files = {
        path: content
        for path, content in source.items()
        if (path.startswith((*_FOLDERS, *chosen)) or path in _TAKEN) and not path.startswith(not_taken)
    }
    files |= {
        path.removeprefix(TEMPLATE).replace("project.template", "project.toml"): content
        for path, content in source.items()
        if path.startswith(TEMPLATE) and (choice.ci == "github" or ".github/" not in path)
    }
    files["docs/index.md"] = files["docs/index.md"].replace(source["docs/front.md"].rstrip(b"\n"), b"# Pages")
    for path in ("pyproject.toml", "Makefile", *(path for path in files if path.endswith(".md"))):
        files[path] = remove_lines(left_out, path, files[path].decode()).encode()
    files["pyproject.toml"] = _unformatted(files["pyproject.toml"].decode(), sorted(chosen)).encode()
    before, line, after = files.pop("LICENSE").decode().partition("Copyright (c)")
    made = rename_files(files, Names(PACKAGE, PROGRAM), Names(package, choice.command))
    made["pyproject.toml"] = _metadata(made["pyproject.toml"].decode(), choice).encode()
    for path in ("README.md", "AGENTS.md", "CHANGELOG.md", f"{package}/__init__.py"):
        made[path] = _filled(made[path].decode(), choice, is_python=path.endswith(".py")).encode()
    # The licence asks to keep whose the taken code is; yours stands above it.
    made["LICENSE"] = f"{before}Copyright (c) {time.strftime('%Y')} {choice.license_holder}\n{line}{after}".encode()
    kit = f"{package}/kit/"
    kit_files = {path.removeprefix(kit): content for path, content in made.items() if path.startswith(kit)}
    made[f"{kit}CHECKSUMS"] = listing(kit_files).encode()
    return dict(sorted(made.items()))


def _metadata(text: str, choice: Choice) -> str:
    about = {"name": choice.name, "description": choice.description, "authors": [{"name": choice.author}]}
    for key, value in about.items():
        try:
            text = set_value(text, ("project", key), value)
        except CannotEdit as error:
            raise EditRefused("pyproject.toml", error.reason, key=f"project.{key}") from error
    return text


def _unformatted(text: str, folders: list[str]) -> str:
    """With another name in them lines are longer and imports in another order: what is taken is not to be formatted."""
    lines = [f'    "{folder[:-1]}",  # {folder.split("/")[-2]}\n' for folder in folders]
    taken = "".join(['    "tests/kit",\n    "docs/kit",\n', *lines])
    return text.replace("[tool.ruff]\n", f"[tool.ruff]\nextend-exclude = [  # taken as they are\n{taken}]\n")


def _filled(text: str, choice: Choice, *, is_python: bool) -> str:
    description = choice.description
    if is_python:
        description = description.replace("\\", "\\\\").replace('"', '\\"')
    words = {"NAME": choice.name, "DESCRIPTION": description, "ORIGIN": f"[{PACKAGE} {__version__}]({REPOSITORY})"}
    return re.sub("@@([A-Z]+)@@", lambda found: words[found[1]], text)
