"""Gives a copy of the tree another package and another command. The kit stays: it takes its names from its package.

By exact patterns, as text. The package's name is a word. The command's name is found in the names that are made from it
(`acme.toml`, `.acme/`, `ACME_JOBS`), at the beginning of a quotation, and before a command or an option; it stays where
it is an English word, the name of a variable, or a table of pyproject.toml.
"""

import re
from pathlib import Path
from typing import NamedTuple


class Names(NamedTuple):
    package: str
    program: str

    @property
    def prefix(self) -> str:
        """Of the environment variables."""
        return self.program.upper().replace("-", "_")


def rename(text: str, old: Names, new: Names, commands: list[str]) -> str:
    """`commands` are the first words of what the command is followed by: `config`, `lock`."""
    program = re.escape(old.program)
    patterns = {
        rf'^{program}(?= = "{old.package}\.)': new.program,  # the console script
        rf"\b{old.package}\b": new.package,
        rf"(?<![A-Z]){old.prefix}_(?=[A-Z])": f"{new.prefix}_",
        rf"(?<![\w.]){program}(?=\.toml\b)": new.program,
        rf"(?<![\w)\]]\.)(?<=\.){program}(?=[/\"'`\s]|$)": new.program,
        rf"(?<=[\"'`]){program}(?=[\"'` ]|-\{{)": new.program,
        rf"(?<![\w.]){program}(?= (?:(?:{'|'.join(commands)})\b|[-[{{]))": new.program,
    }
    for pattern, instead in patterns.items():
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


def rename_files(tree: Path, files: list[str], old: Names, new: Names) -> None:
    """Those of `files` that are text and not of the kit, and the paths that have a name in them."""
    commands = sorted({path.stem for path in tree.glob(f"{old.package}/*/commands/[a-z]*")})
    for file in files:
        path, target = tree / file, tree / rename(f"/{file}", old, new, commands)[1:]
        if not file.startswith(f"{old.package}/kit/") and path.is_file() and not path.is_symlink():
            try:
                path.write_text(rename(path.read_text(), old, new, commands))
            except UnicodeDecodeError:
                pass
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
