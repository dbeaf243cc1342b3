"""Give this tree another name: `python -m tests.house.rename acme ac` for the package `acme` and its command `ac`.

With them go the variables (`AC_JOBS`), `ac.toml`, `.ac/`, the tables of a store, and every sentence that says what to
type. What stays: "the tool" where it is an English word, the tests' fixture and class of that name, `ToolError`,
the member `tool_version` of an answer, and LICENSE, which says whose work this was.
"""

import keyword
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "sampletool"
COMMAND = "tool"
_VARIABLE = COMMAND.upper().replace("-", "_")
_LEFT_ALONE = {".git", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "LICENSE"}


def rename(root: Path, package: str, command: str) -> None:
    variable = command.upper().replace("-", "_")
    new_names = {PACKAGE: package, COMMAND: command, f"{_VARIABLE}_": f"{variable}_"}
    new_names[f"{_VARIABLE}_".lower()] = f"{variable}_".lower()
    names = _names(root)
    for path in [path for path in root.rglob("*") if not _LEFT_ALONE & set(path.relative_to(root).parts)]:
        if path.is_file() and not path.is_symlink():
            try:
                old = path.read_bytes().decode()
            except UnicodeDecodeError:
                continue
            new = names.sub(lambda found: new_names[found[0]], old)
            if new != old:
                path.write_bytes(new.encode())
    for file in list((root / PACKAGE).rglob(f"{COMMAND}.toml")):
        file.rename(file.with_name(f"{command}.toml"))
    (root / PACKAGE).rename(root / package)
    _ruff(root, "check", "--fix", "--select", "I")
    _ruff(root, "format")
    if _ruff(root, "check", "--select", "E501") != 0:  # no formatter breaks a sentence anew
        settings = root / "pyproject.toml"
        longer = '    "E501",    # sentences with a longer name than they were written for'
        settings.write_text(settings.read_text().replace("\nignore = [\n", f"\nignore = [\n{longer}\n", 1))


def _ruff(root: Path, *call: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "ruff", *call, "--no-cache", "--silent"], cwd=root, check=False
    ).returncode


def _names(root: Path) -> re.Pattern[str]:
    """Where a name stands for this program and not for an English word or for a variable of Python's."""
    folder = root / PACKAGE / "commands"
    commands = "|".join(path.stem for path in folder.iterdir() if path.name[0] != "_")
    return re.compile(
        rf"""(?<![A-Za-z0-9]){PACKAGE}(?![A-Za-z0-9])
           | (?:(?<![A-Za-z0-9_])|(?<=\b_)){_VARIABLE}_
           | (?<![A-Za-z0-9_]){_VARIABLE.lower()}_(?!version)   # tables of a store
           | (?<![\w-]){COMMAND}(?=[.]toml\b)
           | (?<=(?<!\w)[.]){COMMAND}(?!\w)                      # the directory of a workspace
           | (?<![\w-]){COMMAND}(?=-(?:[<{{*]|audit|lab|test))     # directories for what is temporary
           | (?<=["'`]){COMMAND}(?=["'`\s])
           | (?:(?<![\w./-])|(?<=\\n)){COMMAND}(?=[ ](?:--?\w|{commands}|hello)\b)
           | (?<=^){COMMAND}(?=[ ]=)                             # the script in pyproject.toml
           | (?<=Usage:[ ]){COMMAND}""",
        re.VERBOSE | re.MULTILINE,
    )


def refusal(root: Path, package: str, command: str) -> str | None:
    if not package.isidentifier() or keyword.iskeyword(package):
        return f"{package!r} is not a name for a package."
    if find_spec(package) or list((root / PACKAGE).rglob(f"{package}.py")):
        return f"There is a module {package} already."
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", command):
        return f"{command!r} is not a name for a command: small letters, digits and dashes."
    return None


def main(args: list[str]) -> int:
    if len(args) != 2:
        sys.stderr.write("Say the new names of the package and of the command, for example: acme ac\n")
        return 2
    root = Path(__file__).parents[2]
    if reason := refusal(root, *args):
        sys.stderr.write(f"{reason}\n")
        return 2
    rename(root, *args)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
