"""The inventory is a TOML file of the workspace: `screw = 20`. Its name is that of no workspace file."""

from pathlib import Path
from typing import NamedTuple

from ..kit.context import Context
from ..kit.contract.response import Effect
from ..kit.safety.errors import InvalidToml
from ..kit.safety.toml_file import TomlEdit, TomlText
from ..kit.settings.change import set_key


class Changed(NamedTuple):
    effect: Effect
    item: str
    pieces: int

    def lines(self) -> list[str]:
        return [f"{self.item}: {self.pieces}"]


def stock_file(context: Context) -> Path:
    """Outside a workspace this is NO_WORKSPACE."""
    return context.workspace / "in_stock.toml"


def counts(text: TomlText) -> dict[str, int]:
    """The pieces of each item. People edit this file: what is no number is an error, not a crash."""
    for item, pieces in text.document.items():
        if type(pieces) is not int:
            raise InvalidToml(str(text.path), f"{item} is not a whole number")
    return text.document


def change(file: TomlEdit, item: str, pieces: int) -> Changed:
    """The new text of the file; nothing is changed before `file.write()`."""
    before = counts(file.before).get(item)
    set_key(file, (item,), pieces)
    return Changed("created" if before is None else "unchanged" if before == pieces else "updated", item, pieces)
