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

_HOLES = re.compile(r"(\{key\}|\{value\})")


@dataclass(frozen=True)
class CommandLine:
    """The words of a command."""

    words: tuple[str, ...]
    program: str = ""
    """The path of the program. It runs in another directory, where a relative path would fail."""

    @classmethod
    def read(cls, text: str, holes: tuple[str, ...]) -> "CommandLine":
        """Return the command in a text, which is split into words as a shell would do it.

        Raise ValueError if that is impossible, or if one of the `holes` is missing.
        """
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            problem = str(error).lower()
            raise ValueError(f"{text!r} cannot be split into arguments: {problem}") from None
        if not words or not words[0]:
            raise ValueError("the command is empty")
        missing = [hole for hole in holes if not any(hole in word for word in words)]
        if missing:
            raise ValueError(f"{text!r} has no {' and no '.join(missing)}")
        return cls(words)

    def located(self, option: str, base: Path) -> "CommandLine":
        """Return the command with the path of its program, relative to `base` or on the PATH.

        Raise ProgramNotFound.
        """
        program = self.words[0]
        is_path = "/" in program
        found = shutil.which(base / program if is_path else program)
        if found is None:
            raise ProgramNotFound(what=f"The command of {option}", command=program)
        return replace(self, program=str(base / found))

    def fill(self, key: str, value: str = "") -> list[str]:
        """Return the words to run, with this key and value."""
        program = self.program or self.words[0]
        filled = []
        for word in (program, *self.words[1:]):
            filled.append(word.replace(KEY, key).replace(VALUE, value))
        return filled

    def show(self, key: str = KEY, value: str = VALUE) -> str:
        """Return the command as it can be typed into a shell, with these texts in its holes."""
        shown_words = []
        for word in self.words:
            pieces = []
            for piece in _HOLES.split(word):
                if piece == KEY:
                    pieces.append(key)
                elif piece == VALUE:
                    pieces.append(value)
                elif piece:
                    pieces.append(shlex.quote(piece))
            shown_words.append("".join(pieces) or "''")
        return " ".join(shown_words)
