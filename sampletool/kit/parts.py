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

from .part_discovery import KIT_FOLDER, part_names
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


def remove(names: set[str], *, is_dry_run: bool) -> None:
    """Show what belongs to these parts, and remove it. End the program if that is refused."""
    _refuse_unknown(names)
    if not is_dry_run and has_uncommitted_changes():
        message = "Cannot remove a part: files differ from the last commit."
        raise SystemExit(f"{message} Commit them first. Then git can undo the removal.")
    paths = tracked_files()
    removal = plan_removal(names, paths)
    _print_lines(["This would be removed:" if is_dry_run else "Removing:", *removal.lines()])
    if is_dry_run:
        return
    run_git("rm", "-rq", "--", *removal.folders)
    for path, text in removal.changed_files.items():
        (ROOT / path).write_text(text)
    _print_lines(
        [
            "Undo:  git restore --staged --worktree .",
            "Next:  make check test. If README.md describes a removed part, change it.",
        ]
    )


def plan_removal(names: set[str], paths: list[str]) -> Removal:
    """Return what belongs to the parts, among the files with these paths."""
    folders = find_folders(names, paths)
    changed_files = {}
    removed_line_count = {}
    for path in paths:
        if _has_marks(path) and not path.startswith(tuple(f"{folder}/" for folder in folders)):
            text = (ROOT / path).read_text()
            new_text = remove_lines(names, path, text)
            if new_text != text:
                changed_files[path] = new_text
                removed_line_count[path] = text.count("\n") - new_text.count("\n")
    return Removal(sorted(folders), changed_files, removed_line_count)


def find_folders(names: set[str], paths: Iterable[str]) -> set[str]:
    """Return the folders of these parts. If one contains another, return the outer one."""
    folders = set()
    for path in paths:
        # The first folder is the package, `tests` or `docs`. A package can be called like a part.
        top, *inner_names = path.split("/")
        inner_folders = inner_names[:-1]
        if top not in (PACKAGE, "tests", "docs") or inner_folders[:1] == [KIT_FOLDER]:
            continue
        for depth, name in enumerate(inner_folders):
            if name == "commands":
                # The folders in it are groups of commands.
                break
            if name in names:
                folders.add("/".join([top, *inner_folders[: depth + 1]]))
                break
    return folders


def remove_lines(names: set[str], path: str, text: str) -> str:
    """Return the text of a file without the lines that end with the mark of one of the parts."""
    marks = tuple(_mark(name, path) for name in names)
    kept_lines = []
    for line in text.splitlines(keepends=True):
        if not line.rstrip().endswith(marks):
            kept_lines.append(line)
    return "".join(kept_lines)


def _mark(name: str, path: str) -> str:
    """Return the end of each line that belongs to a part."""
    if path.endswith(".md"):
        return f"<!-- {name} -->"
    return f"# {name}"


def _has_marks(path: str) -> bool:
    """Return whether lines of this file can belong to a part."""
    file_name = path.rpartition("/")[2]
    return file_name.startswith(("pyproject.", "Makefile")) or path.endswith(".md")


def _refuse_unknown(names: set[str]) -> None:
    """End the program if a name is not that of a part that can be removed."""
    if PACKAGE in names:
        message = f"{PACKAGE} is the package of the program. It cannot be removed as a part."
        raise SystemExit(message)
    unknown = sorted(names - set(part_names()))
    if unknown:
        there_are = ", ".join(part_names()) or "none"
        raise SystemExit(f"No such part: {', '.join(unknown)}. The parts are: {there_are}.")


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
