r"""Give copied files the names of the new project: its package, its command and its kit.

Only the template and the parts that come along are renamed. The kit is not: it takes its names from
the package of the program, so its bytes are the same in every project.

The name of the package is rare, so it is replaced wherever it is a word. The name of the command
can be an English word, such as `tool`. So it is replaced only where it can be nothing else: in the
names that are built from it, at the start of a quotation, and in front of a command or an option.

Each such place is one `_Rule`. For the old command `tool`, for example, the rule

    _Rule(name="settings_file", not_after=(r"\w", r"\w\."), old="tool", before=r"\.toml\b", …)

finds the `tool` in `tool.toml` and in `.tool.toml.lock`, but not the one in `a.tool.toml`.
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


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """One place where an old name is replaced by a new one.

    The text around the name is described by regular expressions, and stays as it is.
    """

    name: str
    old: str
    new: str
    after: str = ""
    """What is directly in front of the old name."""
    not_after: tuple[str, ...] = ()
    """What is not in front of the old name. `re` wants a fixed length, so each length is one."""
    before: str = ""
    """What follows the old name."""

    @property
    def pattern(self) -> str:
        """The regular expression that matches the old name in this place, and nothing around it."""
        in_front = "".join(f"(?<!{text})" for text in self.not_after)
        return f"{in_front}(?<={self.after}){re.escape(self.old)}(?={self.before})"


def _rules(old: Names, new: Names, command_words: Iterable[str]) -> list[_Rule]:
    """Return the rules for all names. Where several rules match, the first one counts."""
    typed_words = "|".join(sorted(command_words)).replace("_", "-")
    return [
        # In pyproject.toml: tool = "sampletool.__main__:main"
        _Rule(
            name="console_script",
            after="^",
            old=old.command,
            before=rf' = "{re.escape(old.package)}\.',
            new=new.command,
        ),
        # from sampletool.kit.testing.tool import Tool
        _Rule(name="kit", after=r"\b", old=old.kit, before=r"\b", new=new.kit),
        # from sampletool.state.errors import NotFound
        _Rule(name="package", after=r"\b", old=old.package, before=r"\b", new=new.package),
        # TOOL_STORE, but not MYTOOL_STORE
        _Rule(
            name="environment_variable",
            not_after=("[A-Z]",),
            old=old.variable_prefix,
            before="[A-Z]",
            new=new.variable_prefix,
        ),
        # tool.toml and .tool.toml.lock, but not a.tool.toml
        _Rule(
            name="settings_file",
            not_after=(r"\w", r"\w\."),
            old=old.command,
            before=r"\.toml\b",
            new=new.command,
        ),
        # The directory .tool/, but not the attribute `self.tool`
        _Rule(
            name="hidden_directory",
            not_after=(r"[\w)\]]",),
            old=f".{old.command}",
            before=r"[/\"'`<\s]|$",
            new=f".{new.command}",
        ),
        # "tool", `tool manifest`, and f"tool-{number}"
        _Rule(
            name="quotation",
            after="[\"'`]",
            old=old.command,
            before=r"[\"'` ]|-\{",
            new=new.command,
        ),
        # tool config get, tool --version, and "Usage: tool [OPTIONS]"
        _Rule(
            name="command_line",
            not_after=(r"[\w.-]",),
            old=old.command,
            before=rf" (?:(?:{typed_words})\b|[-[{{])",
            new=new.command,
        ),
    ]


class Renaming:
    """The replacement of the names of one project by those of another one."""

    def __init__(self, old: Names, new: Names, command_words: Iterable[str]) -> None:
        """Prepare the pattern.

        `command_words` are the first words of all commands, such as `config` and `lock`.
        """
        self._old = old
        # The new project may contain the kit, or depend on it.
        self._keeps_kit_inside = new.kit == f"{new.package}.kit"
        self._new_name_by_rule = {}
        alternatives = []
        for rule in _rules(old, new, command_words):
            self._new_name_by_rule[rule.name] = rule.new
            # The name of the group says which rule has matched.
            alternatives.append(f"(?P<{rule.name}>{rule.pattern})")
        # All names are replaced in one pass. With one pass for each rule, a later rule would find
        # its old name in a new name, for example `tool` in the new command `my-tool`.
        self._any_rule = re.compile("|".join(alternatives), re.MULTILINE)

    def rename_path(self, path: str) -> str:
        """Return the path of a file with the new names."""
        # With the slash, a folder such as `.tool/` is recognized at the start as well.
        return self._replace_names(f"/{path}").removeprefix("/")

    def rename_content(self, content: bytes) -> bytes:
        """Return the content of a file with the new names. Leave it as it is if it is not text."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return content
        if not self._keeps_kit_inside:
            text = self._import_kit_absolutely(text)
        return self._replace_names(text).encode()

    def _replace_names(self, text: str) -> str:
        return self._any_rule.sub(self._new_name, text)

    def _new_name(self, match: re.Match[str]) -> str:
        """Return what replaces a match. Its only group has the name of the rule that matched."""
        assert match.lastgroup is not None
        return self._new_name_by_rule[match.lastgroup]

    def _import_kit_absolutely(self, text: str) -> str:
        """Return Python code that imports the kit from another package than its own.

        `from ..kit.context import Context` becomes `from sampletool.kit.context import Context`.
        """
        relative_import_of_kit = re.compile(r"^(\s*from )\.+kit\b", re.MULTILINE)
        return relative_import_of_kit.sub(rf"\1{self._old.kit}", text)


def rename_files(files: dict[str, bytes], renaming: Renaming) -> dict[str, bytes]:
    """Return the content of each file by its path, both with the new names."""
    renamed = {}
    for path, content in files.items():
        renamed[renaming.rename_path(path)] = renaming.rename_content(content)
    return renamed


def command_words(paths: Iterable[str], package: str) -> set[str]:
    """Return the first word of each command of the package, such as `config` in `config get`.

    The word is the name of a file or a folder in a folder called `commands`.
    """
    # "task" in sampletool/state/commands/task/add.py, "lock" in sampletool/kit/commands/lock.py
    in_commands_folder = re.compile(rf"{re.escape(package)}/\w+/commands/([a-z]\w*)")
    words = set()
    for path in paths:
        match = in_commands_folder.search(path)
        if match:
            words.add(match[1])
    return words
