"""Give copied files the names of the new project: its package, its command and its kit.

Only the template and the parts that come along are renamed. The kit is not: it takes its names from
the package of the program, so its bytes are the same in every project.

The name of the package is rare, so it is replaced wherever it is a word. The name of the command
can be an English word, such as `tool`. So it is replaced only where it can be nothing else: in the
names that are built from it, at the start of a quotation, and in front of a command or an option.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """The names that a file can contain."""

    package: str
    """The package of the program, such as `sampletool`."""
    command: str
    """What users type, such as `tool`."""
    kit: str
    """The package of the kit, such as `sampletool.kit`."""

    @property
    def variable_prefix(self) -> str:
        """The start of the environment variables, such as `TOOL_`."""
        return f"{self.command}_".upper().replace("-", "_")


class Renaming:
    """The replacement of the names of one project by those of another one."""

    def __init__(self, old: Names, new: Names, command_words: Iterable[str]) -> None:
        """Prepare the patterns.

        `command_words` are the first words of all commands, such as `config` and `lock`.
        """
        self._old = old
        self._new = new
        self._keeps_kit_inside = new.kit == f"{new.package}.kit"
        words = "|".join(sorted(command_words)).replace("_", "-")
        command = re.escape(old.command)
        package = re.escape(old.package)
        replacements = {
            # The console script in pyproject.toml: tool = "sampletool.__main__:main"
            rf'^{command}(?= = "{package}\.)': new.command,
            # from sampletool.kit.testing.tool import Tool
            rf"\b{re.escape(old.kit)}\b": new.kit,
            # from sampletool.state.errors import NotFound
            rf"\b{package}\b": new.package,
            # TOOL_STORE, but not MY_TOOL_STORE
            rf"(?<![A-Z]){old.variable_prefix}(?=[A-Z])": new.variable_prefix,
            # tool.toml, and .tool.toml.lock, but not a.tool.toml
            rf"(?<!\w)(?<!\w\.){command}(?=\.toml\b)": new.command,
            # The directory .tool/, but not the attribute `self.tool`
            rf"(?<![\w)\]]\.)(?<=\.){command}(?=[/\"'`<\s]|$)": new.command,
            # "tool", `tool manifest`, and f"tool-{number}"
            rf"(?<=[\"'`]){command}(?=[\"'` ]|-\{{)": new.command,
            # tool config get, tool --version, and "Usage: tool [OPTIONS]"
            rf"(?<![\w.-]){command}(?= (?:(?:{words})\b|[-[{{]))": new.command,
        }
        self._names = list(replacements.values())
        groups = ")|(".join(replacements)
        # All names are replaced in one pass, because a new name can contain an old one.
        self._pattern = re.compile(f"({groups})", re.MULTILINE)

    def path(self, path: str) -> str:
        """Return the path of a file with the new names."""
        # With the slash, a folder such as `.tool/` is recognized at the start as well.
        return self._replace(f"/{path}").removeprefix("/")

    def content(self, content: bytes) -> bytes:
        """Return the content of a file with the new names. Leave it as it is if it is not text."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return content
        if not self._keeps_kit_inside:
            text = self._import_kit_absolutely(text)
        return self._replace(text).encode()

    def _replace(self, text: str) -> str:
        return self._pattern.sub(self._new_name, text)

    def _new_name(self, match: re.Match[str]) -> str:
        # Each pattern is one group, and exactly one of them has matched.
        assert match.lastindex is not None
        return self._names[match.lastindex - 1]

    def _import_kit_absolutely(self, text: str) -> str:
        """Return Python code that imports the kit from another package than its own.

        `from ..kit.context import Context` becomes `from sampletool.kit.context import Context`.
        """
        return re.sub(r"^(\s*from )\.+kit\b", rf"\1{self._old.kit}", text, flags=re.MULTILINE)


def rename_files(files: dict[str, bytes], renaming: Renaming) -> dict[str, bytes]:
    """Return the content of each file by its path, both with the new names."""
    renamed = {}
    for path, content in files.items():
        renamed[renaming.path(path)] = renaming.content(content)
    return renamed


def command_words(paths: Iterable[str], package: str) -> set[str]:
    """Return the first words of all commands. Each is a file or a folder in `commands`."""
    pattern = re.compile(rf"{package}/\w+/commands/([a-z]\w*)")
    words = set()
    for path in paths:
        match = pattern.search(path)
        if match:
            words.add(match[1])
    return words
