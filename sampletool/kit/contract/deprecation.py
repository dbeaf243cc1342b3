"""Flags of options that still work, but that should not be used any more."""

from collections.abc import Iterable
from typing import Any, NamedTuple


class DeprecatedFlag(NamedTuple):
    """A mark on an annotated option: users of this flag get a warning.

    To rename an option without breaking the scripts of users, keep its former name as a second
    flag, and mark it:

        limit: Annotated[
            int,
            typer.Option("--limit", "--max", metavar="N", help="Return at most N items."),
            DeprecatedFlag("--max", instead="Use --limit."),
        ] = 100

    To withdraw an option, mark its only flag. The help then shows the sentence in place of the
    option's own help.
    """

    flag: str
    """A long flag, such as `--max`."""
    instead: str
    """A sentence that says what to use instead."""


def find_deprecated_flags(annotations: Iterable[Any]) -> dict[str, str]:
    """Return the deprecated flags of some parameters, each with what to use instead."""
    deprecated = {}
    for annotation in annotations:
        for mark in getattr(annotation, "__metadata__", ()):
            if isinstance(mark, DeprecatedFlag):
                deprecated[mark.flag] = mark.instead
    return deprecated
