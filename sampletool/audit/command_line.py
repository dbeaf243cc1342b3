"""A command as its caller has typed it, with places for a key and a value.

It is split into words once, and never given to a shell. The key and the value are filled in after
splitting, so nothing in them can become another word.
"""

import re
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from ..kit.contract.errors import ProgramNotFound

KEY = "{key}"
VALUE = "{value}"

# With the parentheses, re.split() keeps the placeholders between the texts.
_PLACEHOLDER = re.compile(r"(\{key\}|\{value\})")


@dataclass(frozen=True)
class CommandLine:
    """The words of a command."""

    words: tuple[str, ...]
    """The words that the caller has typed, with the placeholders."""
    program: str = ""
    """The path of the program. It runs in another directory, where a relative path would fail."""

    @classmethod
    def parse(cls, text: str, placeholders: tuple[str, ...]) -> "CommandLine":
        """Return the command in a text, which is split into words as a shell would do it.

        Raise ValueError if that is impossible, or if one of the `placeholders` is missing.
        """
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            problem = str(error).lower()
            raise ValueError(f"{text!r} cannot be split into arguments: {problem}") from None
        if not words or not words[0]:
            raise ValueError("the command is empty")
        missing = []
        for placeholder in placeholders:
            if not any(placeholder in word for word in words):
                missing.append(placeholder)
        if missing:
            raise ValueError(f"{text!r} has no {' and no '.join(missing)}")
        return cls(words)

    def find_program(self, option: str, base: Path) -> "CommandLine":
        """Return the command with the full path of its program.

        A path is relative to `base`. A name is looked up on the PATH. Raise ProgramNotFound, which
        names the `option` that the command came from.
        """
        name = self.words[0]
        is_path = "/" in name
        found = shutil.which(base / name if is_path else name)
        if found is None:
            raise ProgramNotFound(what=f"The command of {option}", command=name)
        return replace(self, program=str(base / found))

    def fill(self, key: str, value: str = "") -> list[str]:
        """Return the words to run, with this key and value."""
        program = self.program or self.words[0]
        filled = []
        for word in (program, *self.words[1:]):
            filled.append(word.replace(KEY, key).replace(VALUE, value))
        return filled

    def to_shell(self, key: str = KEY, value: str = VALUE) -> str:
        """Return the command as it can be typed into a shell.

        `key` and `value` are shell code, such as `"$key"`. They replace the placeholders, and are
        not quoted.
        """
        return " ".join(_to_shell_word(word, key, value) for word in self.words)


def _to_shell_word(word: str, key: str, value: str) -> str:
    """Quote a word for a shell, and replace its placeholders with shell code."""
    pieces = []
    for piece in _PLACEHOLDER.split(word):
        if piece == KEY:
            pieces.append(key)
        elif piece == VALUE:
            pieces.append(value)
        elif piece:
            pieces.append(shlex.quote(piece))
    if not pieces:
        return "''"
    return "".join(pieces)
