"""sampletool/kit/contract/deprecation.py: a mark renames or withdraws an option."""

from typing import Annotated, NamedTuple

import pytest
import typer

from sampletool.kit.contract.deprecation import DeprecatedFlag, find_deprecated_flags
from sampletool.kit.typer_parameters import describe, parameters_of


def test_only_marked_flags_are_deprecated() -> None:
    renamed = Annotated[
        int,
        typer.Option("--limit", "--max", "--most"),
        DeprecatedFlag("--max", instead="Use --limit."),
        DeprecatedFlag("--most", instead="Use --limit!"),
    ]

    unmarked = Annotated[str, typer.Option("--name")]

    deprecated = find_deprecated_flags([renamed, int, unmarked])

    assert deprecated == {"--max": "Use --limit.", "--most": "Use --limit!"}


def test_a_mark_for_a_flag_that_the_option_does_not_have_is_an_error() -> None:
    mark = DeprecatedFlag("--max", instead="Use --limit.")
    annotations = {"limit": Annotated[int, typer.Option("--limit"), mark]}

    with pytest.raises(ValueError, match="--max is marked as deprecated"):
        describe(parameters_of(annotations), annotations)


class Lookalike(NamedTuple):
    """Another mark, with the same members."""

    flag: str
    instead: str


def test_only_marks_of_this_class_count() -> None:
    marked = Annotated[int, DeprecatedFlag("--max", instead="Use --limit.")]
    similar = Annotated[int, Lookalike("--most", instead="Use --limit.")]

    assert find_deprecated_flags([marked]) == {"--max": "Use --limit."}
    assert find_deprecated_flags([similar]) == {}
