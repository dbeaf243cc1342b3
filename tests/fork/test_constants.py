"""The part has no number of its own: one that is added gets a table with a reason."""

from sampletool.kit.testing.constants import differences, option_differences

_LEFT_OUT = ("template.",)
"""The code of a new project, whose numbers are its own."""


def test_the_part_has_no_constant_without_a_reason() -> None:
    assert differences("fork", (), _LEFT_OUT) == []
    assert option_differences("fork", ()) == []
