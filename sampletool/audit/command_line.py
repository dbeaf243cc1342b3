"""A command of the audited tool, with the placeholders `{key}` and `{value}`.

The text of the command is split into words once, as a shell would do it, but no shell runs it. The
placeholders are replaced after the split. So a key or a value always stays part of one word,
whichever characters it contains.
"""

import re
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from ..kit.contract.errors import ProgramNotFound

KEY = "{key}"
VALUE = "{value}"

# The parentheses make re.split() return the placeholders, too.
_PLACEHOLDER = re.compile(r"(\{key\}|\{value\})")


@dataclass(frozen=True)
class CommandLine:
    """A command, split into words."""

    words: tuple[str, ...]
    """The program and its arguments, as the user has typed them, with the placeholders."""
    program: str = ""
    """The full path of the program, or an empty text until `find_program` has looked it up.

    The program runs in a scratch directory, where a relative path would fail.
    """

    @classmethod
    def parse(cls, text: str, placeholders: tuple[str, ...]) -> "CommandLine":
        """Split a text into the words of a command, as a shell would do it.

        Raise ValueError if the text cannot be split, if it is empty, or if one of the
        `placeholders` is missing.
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
        """Return a copy of the command that contains the full path of its program.

        A program with a slash in its name is a path, relative to the directory `base`. Any other
        name is looked up on the PATH. Raise ProgramNotFound if there is no such program. The error
        names the `option` that contained the command.
        """
        name = self.words[0]
        is_path = "/" in name
        found = shutil.which(base / name if is_path else name)
        if found is None:
            raise ProgramNotFound(what=f"The command of {option}", command=name)
        return replace(self, program=str(base / found))

    def fill(self, key: str, value: str = "") -> list[str]:
        """Return the program and its arguments, with the placeholders replaced."""
        program = self.program or self.words[0]
        filled = []
        for word in (program, *self.words[1:]):
            filled.append(word.replace(KEY, key).replace(VALUE, value))
        return filled

    def to_shell(self, key: str = KEY, value: str = VALUE) -> str:
        """Return the command as a line that can be pasted into a shell.

        `key` and `value` are shell code, such as `"$key"`, which replaces the placeholders. They
        are inserted without quoting, so that the shell can expand them.
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
