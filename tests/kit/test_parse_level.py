"""sampletool/kit/parse_level.py: the context knows what the levels of a command line say."""

import shlex

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import UsageMistakes
from sampletool.kit.global_options import HelpRequested
from sampletool.kit.program import PROGRAM
from sampletool.kit.safety.signals import Signals


def _understood(words: str) -> Context:
    """Return what the context knows after this command line. Ignore help and mistakes."""
    context = Context(Signals())
    try:
        root_command().main(
            args=shlex.split(words),
            prog_name=PROGRAM,
            standalone_mode=False,
            obj=context,
        )
    except (HelpRequested, UsageMistakes):
        pass
    return context


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("config get jobs", None),
        ("config get jobs --raw", "raw"),
        ("config get jobs --raw --json", "json"),
        ("--json config get jobs --raw", "json"),
        ("--format text config get jobs", "text"),
        ("--format text config get jobs --json", "json"),
    ],
)
def test_raw_is_a_format_unless_another_one_is_chosen(words: str, expected: str | None) -> None:
    assert _understood(words).options.format == expected


@pytest.mark.usefixtures("home")
def test_options_of_all_levels_are_known() -> None:
    options = _understood("--quiet config -v get jobs --session-id s-1").options

    assert (options.quiet, options.verbose, options.session_id) == (True, 1, "s-1")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("option", "expected"), [("--dry-run", True), ("--quiet", False)])
def test_a_dry_run_is_known(option: str, expected: bool) -> None:
    context = _understood(f"config unset nothing {option}")

    assert context.dry_run is expected
    assert context.command == "config.unset"


@pytest.mark.parametrize("words", ["config get --nope", "config get --help"])
def test_the_command_and_its_spec_are_known_although_it_does_not_run(words: str) -> None:
    command_line = _understood(words).command_line

    assert command_line.command == "config.get"
    assert command_line.spec is not None
    assert command_line.spec.effect == "nothing"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("config get jobs --revael", "Did you mean '--reveal'?"),
        ("config get jobs --quite", "Did you mean '--quiet'?"),
    ],
)
def test_the_hint_for_a_mistake_knows_the_options_of_the_command_and_the_global_ones(
    words: str,
    hint: str,
) -> None:
    with pytest.raises(UsageMistakes) as caught:
        root_command().main(
            args=words.split(),
            prog_name=PROGRAM,
            standalone_mode=False,
            obj=Context(Signals()),
        )

    (mistake,) = caught.value.mistakes
    assert mistake.suggestion == hint
