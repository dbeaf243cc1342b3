"""Read and change the inventory: a TOML file in the workspace, with lines such as `screw = 20`."""

from dataclasses import dataclass
from pathlib import Path

from ..kit.context import Context
from ..kit.contract.response import Effect
from ..kit.safety.errors import InvalidToml
from ..kit.safety.toml_file import TomlEdit, TomlText
from ..kit.settings.change import set_key

FILE = "in_stock.toml"


@dataclass(frozen=True)
class Changed:
    """The number of pieces of an item after a change."""

    effect: Effect
    item: str
    pieces: int

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [f"{self.item}: {self.pieces}"]


def inventory_of(context: Context) -> Path:
    """Return the path of the inventory. Raise NoWorkspace outside of a workspace."""
    return context.workspace / FILE


def counts(text: TomlText) -> dict[str, int]:
    """Return the number of pieces of each item.

    Raise InvalidToml if a value is not a whole number.
    """
    # People edit this file by hand, so any value can be in it.
    for item, pieces in text.document.items():
        # Not isinstance(): True is an int.
        if type(pieces) is not int:
            raise InvalidToml(str(text.path), f"{item} is not a whole number")
    return text.document


def set_pieces(file: TomlEdit, item: str, pieces: int) -> Changed:
    """Change the text of the file in memory. The caller writes it."""
    effect: Effect = "updated" if item in file.before.document else "created"
    set_key(file, (item,), pieces)
    return Changed(effect, item, pieces)
