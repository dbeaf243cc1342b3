"""Compute the files of a new project from the files of this one. Nothing is read or written here.

* The kit comes along unchanged, or not at all if the project depends on it.
* A chosen part comes along with its tests, under the new names. It then belongs to the owner of the
  project, so it is edited there like any other code.
* Everything else comes from the template, which is written with the names of this project.

Some lines of the template are for some projects only. Their ends say for which: `# state` for those
with the part `state`, `# dependency` for those that depend on the kit, and so on.
"""

import re
import time
from collections.abc import Iterable, Mapping

from .. import REPOSITORY
from ..kit.checksums import checksums_text
from ..kit.contract.file_errors import EditRefused
from ..kit.part_discovery import part_names
from ..kit.parts import can_have_marked_lines, find_folders, remove_lines
from ..kit.program import KIT, PACKAGE, PROGRAM, __version__
from ..kit.settings.toml_edit import CannotEdit, set_value
from ..kit.settings.toml_key import TomlValue
from .choice import Choice
from .kit_requirement import is_direct
from .renaming import Names, Renaming, command_words, rename_files

TEMPLATE = f"{PACKAGE}/fork/template/"
"""The folder with the files that are written for the new project."""

_KIT_FOLDER = f"{PACKAGE}/kit/"

COPIED_FILES = (f"{PACKAGE}/__main__.py", "tests/__init__.py", "constraints.txt", ".gitignore")
"""The files that every project has."""

_FOLDERS_LEFT_OUT = ("bench", "mutants", "project")
"""Folders in the tests of a part that are about this project, and about how it is developed."""

_VARIANTS = frozenset({"vendored", "dependency", "github", "url"})
"""The marks of lines in the template that are not about a part: see `_variants_of`."""

_RUFF_SETTINGS = "ruff-kit.toml"
"""The kit's settings for ruff, in a project that does not contain the kit."""

_ENVIRONMENT_SCRIPT = "environment.sh"
"""The script that installs the kit. So a project that does not contain the kit needs a copy."""


def offered_parts() -> list[str]:
    """Return the parts that can come along."""
    return [name for name in part_names() if name != "fork"]


def new_project(source: Mapping[str, bytes], choice: Choice) -> dict[str, bytes]:
    """Return the files of the new project, by their paths. `source` are the files of this one."""
    renaming = _renaming(source, choice)
    template_files = rename_files(_template_files(source, choice), renaming)
    files = rename_files(_copied_files(source, choice.parts), renaming)
    for path, content in template_files.items():
        # Only now: the renaming would also change the user's own texts, such as the description.
        files[path] = _fill_placeholders(path, content.decode(), choice).encode()
    if choice.kit == "vendored":
        files |= _kit_files(source, choice.package)
    else:
        files[_RUFF_SETTINGS] = _ruff_settings(source)
        files[_ENVIRONMENT_SCRIPT] = source[f"{_KIT_FOLDER}{_ENVIRONMENT_SCRIPT}"]
    pyproject = files["pyproject.toml"].decode()
    files["pyproject.toml"] = _set_metadata(pyproject, choice).encode()
    files["LICENSE"] = _license(source["LICENSE"].decode(), choice.license_holder).encode()
    return dict(sorted(files.items()))


def _variants_of(choice: Choice) -> set[str]:
    """Return the variants of the template that fit the choice, such as "vendored" and "github".

    A *variant* is a mark at the end of a line of the template. The project gets only the lines of
    its own variants. For example, only a project with `--ci github` gets a line with `# github`.
    """
    variants: set[str] = {choice.kit}
    if choice.ci == "github":
        variants.add("github")
    # pyproject.toml then needs a setting without which the build refuses a URL.
    if choice.kit_requirement and is_direct(choice.kit_requirement):
        variants.add("url")
    return variants


def _copied_files(source: Mapping[str, bytes], parts: frozenset[str]) -> dict[str, bytes]:
    """Return the chosen parts with their tests, and the files that every project has."""
    other_parts = set(part_names()) - parts
    chosen_folders = _as_prefixes(find_folders(set(parts), source))
    # The tests of a chosen part may have a folder about another part, which does not come along.
    other_folders = _as_prefixes(find_folders(other_parts, source))
    copied = {}
    for path, content in source.items():
        is_of_chosen_part = path.startswith(chosen_folders) and not path.startswith(other_folders)
        is_left_out = path.startswith("docs/") or is_about_this_project(path)
        if path in COPIED_FILES or (is_of_chosen_part and not is_left_out):
            copied[path] = _without_lines_about(other_parts, path, content)
    return copied


def _without_lines_about(parts: set[str], path: str, content: bytes) -> bytes:
    """Return the content of a file without the lines that are marked as being about the parts."""
    if not can_have_marked_lines(path):
        return content
    return remove_lines(parts, path, content.decode()).encode()


def _as_prefixes(folders: Iterable[str]) -> tuple[str, ...]:
    """Return what the paths in these folders begin with, for `str.startswith`."""
    return tuple(f"{folder}/" for folder in folders)


def is_about_this_project(path: str) -> bool:
    """Return whether a file is a test that only this project needs, so no new project gets it."""
    folders = path.split("/")[:-1]
    return path.startswith("tests/") and not set(folders).isdisjoint(_FOLDERS_LEFT_OUT)


def _template_files(source: Mapping[str, bytes], choice: Choice) -> dict[str, bytes]:
    """Return the files of the template that fit the choice, without the lines for other choices.

    The paths are those in the new project. The names in the texts are still those of this project.
    """
    variants = _variants_of(choice)
    unwanted_parts = set(part_names()) - choice.parts
    unwanted_marks = unwanted_parts | (_VARIANTS - variants)
    files = {}
    for template_path, content in source.items():
        if not template_path.startswith(TEMPLATE):
            continue
        path = _path_in_project(template_path.removeprefix(TEMPLATE), variants)
        if path is None:
            continue
        text = remove_lines(unwanted_marks, path, content.decode())
        text = _remove_marks(text, variants)
        if path.endswith(".toml"):
            # Where a whole table was removed, the empty lines above and below it meet.
            text = re.sub(r"\n{3,}", "\n\n", text)
        files[path] = text.encode()
    return files


def _path_in_project(path: str, variants: set[str]) -> str | None:
    """Return where a file of the template belongs, or None if it is for other projects.

    A file for some projects only is in a folder with the name of their variant.
    """
    folder, _, inner_path = path.partition("/")
    if folder in _VARIANTS:
        if folder not in variants:
            return None
        path = inner_path
    # In the template it has another name, so that no program takes it for the settings of this
    # project.
    return path.replace("pyproject.template", "pyproject.toml")


def _remove_marks(text: str, variants: set[str]) -> str:
    """Return the text without the marks of the variants.

    The marks of parts stay: the new project needs them to remove a part (see kit/parts.py).
    """
    names = "|".join(sorted(variants))
    # The end of `pip install acme # dependency`, or of `[Releases](x) <!-- github -->`
    mark_at_end_of_line = re.compile(
        rf" *(?:# (?:{names})|<!-- (?:{names}) -->)$",
        re.MULTILINE,
    )
    return mark_at_end_of_line.sub("", text)


def _fill_placeholders(path: str, text: str, choice: Choice) -> str:
    """Return the text with the values of the project in place of words such as `@@NAME@@`.

    The template has no other words of this form. `path` is that of the file in the new project.
    """
    description = choice.description
    if path.endswith(".py"):
        # Here, it is in a string of Python, which a quote would end.
        description = description.replace("\\", "\\\\").replace('"', '\\"')
    value_by_word = {
        "NAME": choice.name,
        "DESCRIPTION": description,
        "REPOSITORY": choice.repository,
        "DOCUMENTATION": choice.documentation,
        "ORIGIN": f"[{PACKAGE} {__version__}]({REPOSITORY})",
        "ORIGIN_REPOSITORY": REPOSITORY,
        "ORIGIN_PACKAGE": PACKAGE,
        "COPIED_PARTS": _ruff_exclusion(choice),
    }
    return re.sub(r"@@([A-Z_]+)@@", lambda match: value_by_word[match[1]], text)


def _ruff_exclusion(choice: Choice) -> str:
    """Return the setting that keeps ruff from checking the copied parts, if there are any.

    With other names in them, lines have other lengths, and imports belong in another order.
    """
    if not choice.parts:
        return ""
    lines = ["", "extend-exclude = [  # copied parts, which are formatted for their former names"]
    for part in sorted(choice.parts):
        for folder in (choice.package, "tests"):
            lines.append(f'    "{folder}/{part}",  # {part}')
    lines.append("]")
    return "\n".join(lines)


def _renaming(source: Mapping[str, bytes], choice: Choice) -> Renaming:
    """Return the renaming that turns the names of this project into those of the new one."""
    old_names = Names(package=PACKAGE, command=PROGRAM, kit=KIT)
    new_kit = KIT
    if choice.kit == "vendored":
        new_kit = f"{choice.package}.kit"
    new_names = Names(package=choice.package, command=choice.command, kit=new_kit)
    return Renaming(old_names, new_names, command_words(source, PACKAGE))


def _kit_files(source: Mapping[str, bytes], package: str) -> dict[str, bytes]:
    """Return the files of the kit, unchanged, and a new CHECKSUMS, by their paths in the project.

    With CHECKSUMS, the project notices later if its kit was edited.
    """
    contents = {}
    for path, content in source.items():
        if path.startswith(_KIT_FOLDER):
            contents[path.removeprefix(_KIT_FOLDER)] = content
    checksums = checksums_text(contents)
    files = {f"{package}/kit/{path}": content for path, content in contents.items()}
    files[f"{package}/kit/CHECKSUMS"] = checksums.encode()
    return files


def _ruff_settings(source: Mapping[str, bytes]) -> bytes:
    """Return the kit's settings for ruff, for a project that does not contain the kit."""
    text = source[f"{_KIT_FOLDER}ruff.toml"].decode()
    # It is relative to the folder of the kit, and would lead out of the project from its top.
    cache_setting = re.compile(r"^cache-dir = .*\n", re.MULTILINE)
    return cache_setting.sub("", text).encode()


def _set_metadata(pyproject: str, choice: Choice) -> str:
    """Return the text of pyproject.toml with the metadata of the project.

    Raise EditRefused if a value cannot be written there.
    """
    metadata: list[tuple[tuple[str, ...], TomlValue]] = [
        (("project", "name"), choice.name),
        (("project", "description"), choice.description),
        (("project", "authors"), [{"name": choice.author}]),
    ]
    if choice.kit_requirement:
        metadata.append((("project", "dependencies"), [choice.kit_requirement]))
    if choice.repository:
        metadata.append((("project", "urls", "Repository"), choice.repository))
    if choice.documentation:
        metadata.append((("project", "urls", "Documentation"), choice.documentation))
    for key, value in metadata:
        try:
            pyproject = set_value(pyproject, key, value)
        except CannotEdit as error:
            raise EditRefused("pyproject.toml", error.reason, key=".".join(key)) from error
    return pyproject


def _license(text: str, holder: str) -> str:
    """Return the license with a line for another holder above the line of the copied code."""
    title, beginning_of_line, rest = text.partition("Copyright (c)")
    year = time.strftime("%Y")
    new_line = f"Copyright (c) {year} {holder}\n"
    return f"{title}{new_line}{beginning_of_line}{rest}"
