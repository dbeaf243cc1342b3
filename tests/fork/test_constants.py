"""The constants of the part, and the reason for each value."""

from sampletool.kit.testing.constants import Constant, differences, option_differences

_LEFT_OUT = ("template.",)
"""The code of a new project, whose numbers are its own."""

_CONSTANTS = (
    Constant(
        "commands.fork._MAX_LINE_CHARACTERS",
        100,
        "longer texts make lines that the linter of the new project refuses",
    ),
    Constant(
        "commands.fork._MAX_URL_CHARACTERS",
        200,
        "longer addresses are a mistake, and make lines that nobody can read",
    ),
)


def test_each_constant_has_a_reason() -> None:
    assert differences("fork", _CONSTANTS, _LEFT_OUT) == []
    assert option_differences("fork", ()) == []
