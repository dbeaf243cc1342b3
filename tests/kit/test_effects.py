"""sampletool/kit/effects.py: what commands change, in words that a project can add to."""

from types import SimpleNamespace

import pytest

from sampletool.kit import app, effects
from sampletool.kit.context import Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.effects import EFFECTS, all_effects, changes_something, danger_level
from sampletool.kit.safety.signals import Signals


@pytest.fixture
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the effects of a part."""
    part = SimpleNamespace(
        EFFECTS={
            "server": {"help": "Data on a server."},
            "cache": {"help": "A cache.", "changes_nothing": True},
        }
    )
    monkeypatch.setattr(effects, "all_effects", all_effects.__wrapped__)
    monkeypatch.setattr(effects, "offered", lambda file: [part] if file == "effects" else [])


@pytest.mark.parametrize(
    ("effect", "expected"),
    [("nothing", False), ("scratch", False), ("files", True), ("store", True), ("settings", True)],
)
def test_the_kit_says_which_of_its_effects_change_something(effect: str, expected: bool) -> None:
    assert changes_something(effect) is expected


@pytest.mark.usefixtures("_added")
def test_an_effect_of_a_part_changes_something_unless_the_part_says_otherwise() -> None:
    assert changes_something("server") is True
    assert changes_something("cache") is False


def test_an_effect_that_is_not_known_changes_something() -> None:
    assert changes_something("sevrer") is True


@pytest.mark.usefixtures("_added")
def test_the_effects_of_parts_come_first() -> None:
    assert list(effects.all_effects()) == ["cache", "server", *EFFECTS]


def test_the_parts_are_not_imported_for_an_effect_of_the_kit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise AssertionError("the effects of all parts were imported")

    monkeypatch.setattr(effects, "all_effects", refuse)

    assert changes_something("nothing") is False
    assert changes_something("files") is True


@pytest.mark.usefixtures("_added")
@pytest.mark.parametrize(
    ("effect", "is_silent"),
    [("files", True), ("server", True), ("cache", False), ("nothing", False)],
)
def test_quiet_hides_the_result_of_a_command_that_changes_something(
    effect: str,
    is_silent: bool,
) -> None:
    context = Context(Signals())
    spec = CommandSpec(effect=effect)
    context.set_command_line(context.command_line._replace(spec=spec))

    assert app._is_silent_when_quiet(context) is is_silent


@pytest.mark.parametrize(
    ("spec", "level"),
    [
        (CommandSpec(effect="nothing"), "safe"),
        (CommandSpec(effect="scratch"), "safe"),
        (CommandSpec(effect="files"), "mutating"),
        (CommandSpec(effect="scratch", runs_what_it_is_given=True), "mutating"),
        (CommandSpec(effect="files", destroys="The file."), "destructive"),
    ],
)
def test_a_command_is_as_dangerous_as_what_it_changes(spec: CommandSpec, level: str) -> None:
    assert danger_level(spec) == level
