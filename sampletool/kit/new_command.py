"""Create a command and its tests, to be edited. `make new-command NAME=group/name` runs this.

NAME is `add` for a command at the top level, or `item/add` for one in a group. The command changes
a file under a lock, and its tests show that nothing is lost. With --plain, it changes nothing.

A command in a group is created in the part that has the group. If no part has it, a new part with
the name of the group is created. A command at the top level is created in the only part of the
project. PART names another part. No file is replaced. README.md, next to this file, explains each
piece.
"""

import argparse
import keyword
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from string import Template

from .command_folder import command_name, module_name
from .command_templates import COMMAND, PLAIN_COMMAND, PLAIN_TEST, TEST
from .part_discovery import KIT_FOLDER_NAME, command_packages, directory_of, part_names
from .program import KIT, PACKAGE, PROGRAM
from .project import ROOT, describe_os_error, require_project

_WORD = re.compile(r"[a-z](-?[a-z0-9]){0,29}")
"""The name of a command or a group, as users type it: `add`, `open-it`, but not `-a` or `a--b`."""

_USAGE = (
    f"Use NAME=add for `{PROGRAM} add`, or NAME=item/add for `{PROGRAM} item add`. "
    "A name begins with a lowercase letter. It has up to 30 lowercase letters and digits, "
    "and may have single dashes between them."
)

_TAKEN_FOLDERS = {
    "commands": "each part has a folder of this name",
    "docs": "the pages of the project are in a folder of this name",
    KIT_FOLDER_NAME: "the kit is in this folder",
    "tests": "the tests of the project are in a folder of this name",
    PACKAGE: "the package itself has this name, and removing the part would remove the package",
}
"""The names that no part can have, and why."""


class Refused(Exception):
    """A reason not to create anything. The text is for the user."""


@dataclass(frozen=True)
class NewCommand:
    """A command to create. Its names are written as users type them, such as `open-it`."""

    part: str
    """The folder of the part, such as `gift_box`."""
    group: str | None
    """The group, or None at the top level."""
    name: str
    is_plain: bool

    @property
    def words(self) -> list[str]:
        """The words that run the command."""
        if self.group is None:
            return [self.name]
        return [self.group, self.name]

    @property
    def modules(self) -> list[str]:
        """The names of the modules of these words, such as `open_it`."""
        return [module_name(word) for word in self.words]

    @property
    def path(self) -> str:
        """The path of the module in the project."""
        *folders, module = self.modules
        return "/".join([PACKAGE, self.part, "commands", *folders, f"{module}.py"])

    @property
    def test_path(self) -> str:
        """The path of the tests in the project."""
        return f"tests/{self.part}/commands/test_{'_'.join(self.modules)}.py"


def parse_name(text: str) -> tuple[str | None, str]:
    """Return the group and the name of a command. The group is None at the top level.

    Raise Refused if the text is no such name.
    """
    if not text:
        raise Refused(f"The name of the command is missing. {_USAGE}")
    *groups, name = text.split("/")
    words = [*groups, name]
    if len(groups) > 1 or not all(_WORD.fullmatch(word) for word in words):
        raise Refused(f"{text!r} cannot be the name of a command. {_USAGE}")
    if groups:
        return groups[0], name
    return None, name


def choose_part(group: str | None, requested: str) -> str:
    """Return the part for a command. `requested` is the one that the user named, or "".

    Raise Refused if there are several parts to choose from, or if a new part cannot have the name.
    """
    part_with_group = _find_part_with_group(group)
    if requested and part_with_group not in (None, requested):
        raise Refused(f"The part {part_with_group} has the group {group}. Leave out PART.")
    if part_with_group is not None:
        return part_with_group
    if requested:
        part = requested
    elif group is not None:
        part = module_name(group)
    else:
        part = _only_part()
    if part not in part_names():
        _check_new_part(part)
    return part


def _find_part_with_group(group: str | None) -> str | None:
    """Return the part that has the group, or None."""
    if group is None:
        return None
    for owner, commands_folder in _commands_folders().items():
        if owner != KIT_FOLDER_NAME and (commands_folder / module_name(group)).is_dir():
            return owner
    return None


def _only_part() -> str:
    """Return the only part of the project. Raise Refused if there are several, or none."""
    names = part_names()
    if len(names) == 1:
        return names[0]
    if names:
        parts = f"This project has the parts {', '.join(names)}."
    else:
        parts = "This project has no part yet."
    raise Refused(f"{parts} Pass the name of an existing or a new part, as in PART=stock.")


def _check_new_part(part: str) -> None:
    """Raise Refused if no part can have this name."""
    if not part.isidentifier() or part != part.lower() or part.startswith("_"):
        raise Refused(f"{part!r} cannot be the name of a part. Use small letters, digits and `_`.")
    reason = _TAKEN_FOLDERS.get(part)
    if reason is None and keyword.iskeyword(part):
        reason = "Python has a keyword of this name, so no file could import the part"
    if reason is None and part in sys.stdlib_module_names:
        reason = "Python has a module of this name, and a reader would take one for the other"
    if reason is not None:
        hint = "Choose another name for the group, or name the part, as in PART=stock."
        raise Refused(f"A part cannot be called {part}: {reason}. {hint}")


def check_top_level_name(name: str, part: str) -> None:
    """Raise Refused if the name of a command at the top level already has another meaning."""
    if name == "help":
        raise Refused(f"`{PROGRAM} help` shows the help. Choose another name.")
    module = module_name(name)
    for owner, commands_folder in _commands_folders().items():
        if (commands_folder / module).is_dir():
            raise Refused(f"`{PROGRAM} {name}` is a group of commands. Choose another name.")
        # A file of the part itself is reported later, with the other files that exist.
        is_command = (commands_folder / f"{module}.py").exists()
        if is_command and owner != part:
            raise Refused(f"{owner} has the command `{PROGRAM} {name}`. Choose another name.")


def check_group(group: str, part: str) -> None:
    """Raise Refused if the name of a group in this part already has another meaning."""
    if group == "help":
        raise Refused(f"`{PROGRAM} help` shows the help. Choose another group.")
    module = module_name(group)
    for owner, commands_folder in _commands_folders().items():
        if (commands_folder / f"{module}.py").exists():
            raise Refused(f"`{PROGRAM} {group}` is a command. Choose another group.")
        if owner == KIT_FOLDER_NAME and (commands_folder / module).is_dir():
            raise Refused(f"The group {group} belongs to the kit. Choose another group.")
    # A part may have a group of its own name. With the name of another part, readers would look
    # for the commands of the group in that part.
    is_named_after_own_part = group == command_name(part)
    is_named_after_a_part = module in part_names()
    if is_named_after_a_part and not is_named_after_own_part:
        raise Refused(f"There is a part called {group}. A group of {part} needs another name.")


def _commands_folders() -> dict[str, Path]:
    """Return the folder `commands` of each part and of the kit, by the name of its owner.

    The owner is the name of the part, or "kit".
    """
    folders = {}
    for package in command_packages():
        # Of `acme.stock.commands`, the owner is `stock`.
        owner = package.split(".")[-2]
        folders[owner] = Path(directory_of(package))
    return folders


def new_files(command: NewCommand) -> dict[str, str]:
    """Return the content of each file to create, by its path in the project."""
    files = {}
    # The part or the group may exist already. Its own files stay.
    for path, text in _init_files(command).items():
        if not (ROOT / path).exists():
            files[path] = text
    names = {
        "program": PROGRAM,
        "words": " ".join(command.words),
        "quoted_words": ", ".join(f'"{word}"' for word in command.words),
        "kit": _kit_import_path(command),
        "kit_package": KIT,
    }
    command_template, test_template = COMMAND, TEST
    if command.is_plain:
        command_template, test_template = PLAIN_COMMAND, PLAIN_TEST
    files[command.path] = _code_from(command_template, names)
    files[command.test_path] = _code_from(test_template, names)
    return files


def _kit_import_path(command: NewCommand) -> str:
    """Return what follows `from` where the module of the command imports the kit.

    For `acme/stock/commands/add.py`, it is `...kit` if the program acme contains the kit.
    """
    if not _is_kit_in_package():
        return KIT
    # One dot is the folder of the module, and each further dot is the folder around it.
    *group_folders, _module = command.modules
    folders_in_package = [command.part, "commands", *group_folders]
    dots_to_package = "." + "." * len(folders_in_package)
    return f"{dots_to_package}{KIT_FOLDER_NAME}"


def _is_kit_in_package() -> bool:
    """Return whether the program contains the kit, and does not depend on an installed one."""
    return KIT.startswith(f"{PACKAGE}.")


def _code_from(template: Template, names: dict[str, str]) -> str:
    """Return the code of a new file: the template with these names, and with sorted imports."""
    code = template.substitute(names)
    if not _is_kit_in_package():
        # An empty line separates installed packages from modules of the program. The kit is an
        # installed package here, like typer and pytest, so the line between them is removed.
        last_installed_import = r"(import (?:typer|pytest)\n)\n(?=from)"
        code = re.sub(last_installed_import, r"\1", code)
    return code


def _init_files(command: NewCommand) -> dict[str, str]:
    """Return the content of the `__init__.py` of each folder that the command needs."""
    code = f"{PACKAGE}/{command.part}"
    tests = f"tests/{command.part}"
    title = command.part.replace("_", " ").strip().capitalize()
    files = {
        f"{code}/__init__.py": f'"""{title}: describe here what this part is for."""\n',
        f"{code}/commands/__init__.py": f'"""{title}."""\n',
        f"{tests}/__init__.py": "",
        f"{tests}/commands/__init__.py": "",
    }
    if command.group is not None:
        folder = f"{code}/commands/{module_name(command.group)}"
        about = f'"""Describe here what the commands of the group {command.group} do."""\n'
        files[f"{folder}/__init__.py"] = about
    return files


def write_files(files: dict[str, str]) -> None:
    """Create the files. Raise Refused, and leave no file behind, if one of them exists."""
    existing_paths = [path for path in files if (ROOT / path).exists()]
    if existing_paths:
        listed_paths = ", ".join(existing_paths)
        raise Refused(f"These files exist already: {listed_paths}. Nothing was created.")
    created_files: list[Path] = []
    try:
        for path, text in files.items():
            _create_file(ROOT / path, text)
            created_files.append(ROOT / path)
    except OSError as error:
        for file in created_files:
            file.unlink()
        reason = describe_os_error(error)
        raise Refused(f"The files cannot be created ({reason}). Nothing was created.") from error


def _create_file(path: Path, text: str) -> None:
    """Create a file, and the folders that it needs. Raise FileExistsError if it exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # With "x", a file that another process creates at this moment is not replaced.
    with path.open("x") as file:
        file.write(text)


def _parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="new_command", description="Create a command.")
    parser.add_argument("name", metavar="NAME", help="add, or item/add in a group")
    parser.add_argument("--part", default="", help="the part that gets the command")
    parser.add_argument("--plain", action="store_true", help="create one that changes nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Create the command, and print the path of each new file and what to do next."""
    require_project()
    options = _parse_arguments(arguments)
    try:
        group, name = parse_name(options.name)
        part = choose_part(group, options.part)
        if group is None:
            check_top_level_name(name, part)
        else:
            check_group(group, part)
        command = NewCommand(part=part, group=group, name=name, is_plain=options.plain)
        files = new_files(command)
        write_files(files)
    except Refused as refused:
        raise SystemExit(str(refused)) from None
    for line in _report(command, list(files)):
        sys.stdout.write(f"{line}\n")


def _report(command: NewCommand, created_paths: list[str]) -> list[str]:
    """Return the lines that say which files were created, and what to do next."""
    # The program is installed next to the Python that runs this.
    program = os.path.relpath(Path(sys.executable).with_name(PROGRAM))
    return [
        "Created:",
        *(f"  {path}" for path in created_paths),
        "The command works already. Next:",
        f"  {program} {' '.join(command.words)} --help",
        f"  make test TESTS={command.test_path}",
        f"Then edit {command.path} and its tests, and run `make check`.",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
