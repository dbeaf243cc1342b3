"""What commands can change: the words that a CommandSpec can have as its `effect`.

A part brings words of its own in a file `effects.py` with a literal `EFFECTS`, like the one below.
A command with such an effect must have --dry-run, unless the part says that it `changes_nothing`.
"""

from functools import cache
from typing import Literal, NotRequired, TypedDict

from .contract.command_spec import CommandSpec
from .part_discovery import offered

DangerLevel = Literal["safe", "mutating", "destructive"]
"""How much a command can damage, for callers that ask a person before they run some commands."""


class KnownEffect(TypedDict):
    """What the tool knows about one effect."""

    help: str
    """What a command with this effect changes, as a phrase that ends with a period."""
    changes_nothing: NotRequired[bool]
    """Whether nothing is different after the command than before. If it is absent, something is."""


EFFECTS: dict[str, KnownEffect] = {
    "store": {"help": "Data that all commands share."},
    "settings": {"help": "A settings file."},
    "files": {"help": "The user's files."},
    "outputs": {"help": "Files that the command creates for the user."},
    "sessions": {"help": "Files in a session."},
    "locks": {"help": "Locks of other commands."},
    "scratch": {
        "help": "Only temporary files, which the command removes before it ends.",
        "changes_nothing": True,
    },
    "nothing": {"help": "Nothing at all.", "changes_nothing": True},
}
"""The effects that the kit knows. If several apply to a command, it has the first one."""


@cache
def all_effects() -> dict[str, KnownEffect]:
    """Return the effects of the parts, sorted by name, and then those of the kit."""
    added: dict[str, KnownEffect] = {}
    for module in offered("effects"):
        added |= module.EFFECTS
    return dict(sorted(added.items())) | EFFECTS


def changes_something(effect: str) -> bool:
    """Return whether something is different after a command with this effect.

    It is true for a word that is not known, because this is the safe answer.
    """
    # Most commands have an effect of the kit. Then no part is imported.
    known = EFFECTS.get(effect)
    if known is None:
        known = all_effects().get(effect)
    if known is None:
        return True
    return not known.get("changes_nothing", False)


def danger_level(spec: CommandSpec) -> DangerLevel:
    """Return how much a command can damage.

    A command is destructive if users cannot get back what it ends or replaces. One that runs a
    program that it is given is at least mutating, because nothing is known about that program.
    """
    if spec.destroys:
        return "destructive"
    if spec.runs_what_it_is_given or changes_something(spec.effect):
        return "mutating"
    return "safe"
