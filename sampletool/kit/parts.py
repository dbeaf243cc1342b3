"""List the parts of the program, or remove some: `python -m acme.kit.parts remove NAME…`.

Removing the part `stock` removes

* its folders: `stock` in the package, in `tests` and in `docs`, and the folders named `stock` in
  other parts, which are about both, such as the tests in `tests/mcp/stock`;
* each line that ends with its mark: `# stock` in pyproject.toml and in a Makefile, also in those of
  templates, and `<!-- stock -->` in a page.

A command can have the name of a part. So a folder in the `commands` of another part is not removed.
Only files that git tracks are changed, and only if nothing differs from the last commit. So git can
undo the removal.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from .part_discovery import KIT_FOLDER_NAME, part_names
from .program import KIT, PACKAGE
from .project import ROOT, has_uncommitted_changes, require_project, run_git, tracked_files

_USAGE = f"""Usage: python -m {KIT}.parts
       python -m {KIT}.parts remove [--dry-run] NAME...

Without arguments, list the parts. `remove` removes parts; with --dry-run, it only shows what it
would remove."""


@dataclass(frozen=True)
class Removal:
    """What is removed together with some parts."""

    folders: list[str]
    """The folders of the parts, as paths below the directory of the project."""
    changed_files: dict[str, str]
    """The new text of each file that loses lines, by its path."""
    removed_line_count: dict[str, int]
    """How many lines each of these files loses."""

    def lines(self) -> list[str]:
        """Return what a person sees."""
        lines = [f"  {folder}/" for folder in self.folders]
        for path, count in self.removed_line_count.items():
            noun = "line" if count == 1 else "lines"
            lines.append(f"  {count} {noun} of {path}")
        return lines


def main(args: list[str]) -> int:
    """List the parts, or remove those that the arguments name. Return the exit code."""
    require_project()
    if not args:
        _print_lines(part_names())
        return 0
    command, *names = args
    is_dry_run = "--dry-run" in names
    names = [name for name in names if name != "--dry-run"]
    if command != "remove" or not names or any(name.startswith("-") for name in names):
        raise SystemExit(_USAGE)
    remove(set(names), is_dry_run=is_dry_run)
    return 0


def remove(parts: set[str], *, is_dry_run: bool) -> None:
    """Print what belongs to these parts, and remove it. End the program if that is refused."""
    _refuse_other_names(parts)
    if not is_dry_run and has_uncommitted_changes():
        message = "Cannot remove a part: files differ from the last commit."
        raise SystemExit(f"{message} Commit them first. Then git can undo the removal.")
    removal = plan_removal(parts, tracked_files())
    if is_dry_run:
        _print_lines(["This would be removed:", *removal.lines()])
        return
    _print_lines(["Removing:", *removal.lines()])
    run_git("rm", "-rq", "--", *removal.folders)
    for path, text in removal.changed_files.items():
        (ROOT / path).write_text(text)
    _print_lines(
        [
            "Undo:  git restore --staged --worktree .",
            "Next:  make pages check test. If README.md describes a removed part, change it.",
        ]
    )


def plan_removal(parts: set[str], paths: list[str]) -> Removal:
    """Return what belongs to these parts. `paths` are those of all files that may be changed."""
    folders = find_folders(parts, paths)
    removed_prefixes = tuple(f"{folder}/" for folder in folders)
    changed_files = {}
    removed_line_count = {}
    for path in paths:
        if path.startswith(removed_prefixes) or not can_have_marked_lines(path):
            continue
        text = (ROOT / path).read_text()
        new_text = remove_lines(parts, path, text)
        if new_text != text:
            changed_files[path] = new_text
            removed_line_count[path] = text.count("\n") - new_text.count("\n")
    return Removal(sorted(folders), changed_files, removed_line_count)


def find_folders(parts: set[str], paths: Iterable[str]) -> set[str]:
    """Return the folders of these parts. `paths` are those of all files of the project.

    If one folder of a part contains another, return only the outer one.
    """
    folders = set()
    for path in paths:
        folder = _outermost_part_folder(parts, path)
        if folder is not None:
            folders.add(folder)
    return folders


def _outermost_part_folder(parts: set[str], path: str) -> str | None:
    """Return the first folder on the path of a file that has the name of a part, or None.

    For the part `stock`, it is `tests/mcp/stock` in `tests/mcp/stock/test_add.py`.
    """
    *folders, _file_name = path.split("/")
    if not folders or folders[0] not in (PACKAGE, "tests", "docs"):
        return None
    # The top folder is not compared: the package may have the name of a part.
    top_folder, *inner_folders = folders
    # The kit belongs to no part.
    if inner_folders and inner_folders[0] == KIT_FOLDER_NAME:
        return None
    folder = top_folder
    for name in inner_folders:
        if name == "commands":
            # The folders in it are groups of commands.
            return None
        folder = f"{folder}/{name}"
        if name in parts:
            return folder
    return None


def remove_lines(names: set[str], path: str, text: str) -> str:
    """Return the text of the file at `path` without the lines that belong to one of these names.

    Such a line ends with a comment that consists of the name: `# stock` or `<!-- stock -->`.
    """
    marks = tuple(_mark(name, path) for name in names)
    kept_lines = []
    for line in text.splitlines(keepends=True):
        if not line.rstrip().endswith(marks):
            kept_lines.append(line)
    return "".join(kept_lines)


def _mark(name: str, path: str) -> str:
    """Return the comment that marks a line of this file as belonging to a part."""
    if path.endswith(".md"):
        return f"<!-- {name} -->"
    return f"# {name}"


def can_have_marked_lines(path: str) -> bool:
    """Return whether lines of this file can belong to a part. Only these files are searched."""
    file_name = path.rpartition("/")[2]
    return file_name.startswith(("pyproject.", "Makefile")) or path.endswith(".md")


def _refuse_other_names(names: set[str]) -> None:
    """End the program if one of the names is not the name of a part that can be removed."""
    if PACKAGE in names:
        message = f"{PACKAGE} is the package of the program. It cannot be removed as a part."
        raise SystemExit(message)
    unknown = sorted(names - set(part_names()))
    if unknown:
        existing_parts = ", ".join(part_names())
        if not existing_parts:
            existing_parts = "none"
        raise SystemExit(f"No such part: {', '.join(unknown)}. The parts are: {existing_parts}.")


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
