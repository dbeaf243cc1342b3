"""A command with all that it may see, and what is told about it once it ran."""

import os
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

OWN_PLACES = (".tool", "out")
"""What is ours in a workspace, and nobody's input."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_GLOB = re.compile(r"[*?[]")


class Job(NamedTuple):
    """A command with all that it may see. A target has outputs; a check has none."""

    name: str
    run: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    needs: tuple[str, ...]
    env: dict[str, str]

    def problems(self) -> list[str]:
        """Why it must not be run: whoever makes jobs asks, for what runs and keeps them relies on it."""
        found = []
        if not _NAME.fullmatch(self.name):
            found.append("a name is 1 to 64 letters, digits, '.', '_' or '-'")
        if not self.run:
            found.append("run is missing: the command as a list, such as ['python3', 'make.py']")
        if any("=" in name for name in self.env):
            found.append("env has a name with '='")
        for member, paths in (("inputs", self.inputs), ("outputs", self.outputs)):
            found += [f"{member}: {path!r} {wrong}" for path in paths if (wrong := _wrong(path, member))]
        ordered = sorted(f"{path}/" for path in self.outputs)
        nested = [after[:-1] for before, after in pairwise(ordered) if after.startswith(before)]
        return found + [f"outputs: {path!r} is inside another, or the same" for path in nested]

    def find_inputs(self, root: Path) -> list[str]:
        """The declared files, relative to the workspace; a pattern that matches nothing is a ValueError.

        A file of just that name goes before a pattern. `**` at the end means all files below: pathlib finds them
        there only from Python 3.13 on, and only directories before.
        """
        found: set[str] = set()
        for pattern in self.inputs:
            literal, at_any_depth = root / pattern, pattern.split("/")[-1] == "**"
            is_pattern = _GLOB.search(pattern) and not literal.is_file()
            paths = root.glob(f"{pattern}/*" if at_any_depth else pattern) if is_pattern else [literal]
            files = {os.path.relpath(path, root) for path in paths if path.is_file()}
            files = {name for name in files if name.split(os.sep)[0] not in OWN_PLACES}
            if not files:
                wrong = f"is a directory: write {f'{pattern}/**'!r}" if literal.is_dir() else "matches no file"
                raise ValueError(f"the input {pattern!r} {wrong}")
            found |= files
        return sorted(found)


def _wrong(path: str, member: str) -> str | None:
    """Why it names no file of the workspace, and how to write the one that is meant."""
    plain = os.path.normpath(path)
    top = plain.split("/")[0]
    if top in ("", ".."):
        return "leaves the workspace"
    if not path.isprintable():
        return "has a character that cannot be shown"
    if top in OWN_PLACES:
        advice = "name the target in needs" if member == "inputs" else "what is written gets there by itself"
        return f"is in a place of the tool's own: {advice}"
    if plain == ".":
        return "is the workspace itself"
    below = "/**" if member == "inputs" and path.endswith("/") else ""
    return None if plain == path else f"has an empty, '.' or '..' part: write {plain + below!r}"


@dataclass(frozen=True)
class Done:
    """What is told about one job. `reason` says why a target was stale."""

    name: str
    status: str
    reason: str | None = None
    outputs: str | None = None
    note: str | None = None
    exit_status: int | None = None
    tail: str | None = None
    log: str | None = None

    def lines(self) -> list[str]:
        told = [f"{self.name}: {self.status.replace('_', ' ')}" + (f" ({self.reason})" if self.reason else "")]
        if self.status != "passed":
            told += [f"    {line}" for line in (self.note, *(self.tail or "").splitlines()[-10:]) if line]
        return [*told, f"    all of it: {self.log}"] if self.log and self.status == "failed" else told
