"""A command as the caller typed it: split into words once, filled in word by word, never given to a shell.

Because {key} and {value} are put in after splitting, nothing they contain can become another word.
"""

import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

from ..kit.contract.errors import ProgramNotFound

KEY, VALUE = "{key}", "{value}"
_HOLES = re.compile(r"(\{key\}|\{value\})")


class CommandLine(NamedTuple):
    words: tuple[str, ...]
    program: str = ""
    """Where the first word was found; it will run in another directory, where a relative path means nothing."""

    @classmethod
    def read(cls, text: str, holes: tuple[str, ...]) -> "CommandLine":
        """Split as a shell would; ValueError if that cannot be done, or if a hole is missing."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise ValueError(f"{text!r} cannot be split into words: {str(error).lower()}") from None
        if not words or not words[0]:
            raise ValueError("the command is empty")
        missing = [hole for hole in holes if not any(hole in word for word in words)]
        if missing:
            raise ValueError(f"{text!r} has no {' and no '.join(missing)}")
        return cls(words)

    def located(self, option: str, base: Path) -> "CommandLine":
        """The same with its program found, by its path from `base` or on the PATH."""
        program = self.words[0]
        found = shutil.which(base / program if "/" in program else program)
        if found is None:
            raise ProgramNotFound(what=f"The command of {option}", command=program)
        return self._replace(program=str(base / found))

    def fill(self, key: str, value: str = "") -> list[str]:
        words = (self.program or self.words[0], *self.words[1:])
        return [word.replace(KEY, key).replace(VALUE, value) for word in words]

    def show(self, key: str = KEY, value: str = VALUE) -> str:
        """As it can be typed, for the shell too, with this in place of the holes."""
        holes = {KEY: key, VALUE: value}
        words = (_HOLES.split(word) for word in self.words)
        return " ".join(
            "".join(holes.get(part) or shlex.quote(part) for part in parts if part) or "''" for parts in words
        )
