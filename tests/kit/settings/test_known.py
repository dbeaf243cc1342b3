"""What a known setting may be."""

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.settings.known import check, read_as


@pytest.mark.parametrize(
    ("kind", "given", "meant"),
    [("duration", "2m", 120.0), ("count", "3", 3), ("count", 4, 4), ("format", "jsonl", "jsonl"), ("text", "x", "x")],
)
def test_a_value_is_read_as_what_its_setting_is(kind: str, given: object, meant: object) -> None:
    assert read_as(kind, given) == meant


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("duration", "2"),
        ("count", "0"),
        ("count", True),
        ("count", "1.5"),
        ("format", "raw"),
        ("text", ""),
        ("text", 1),
    ],
)
def test_a_value_that_its_setting_cannot_have_is_named(kind: str, given: object) -> None:
    with pytest.raises(ValueError, match=f"{given!r}"):
        read_as(kind, given)


def test_auto_leaves_it_to_the_call_unless_the_setting_has_a_default() -> None:
    assert (check("jobs", "auto", "here"), check("session_ttl", "auto", "here")) == (None, 7 * 86400)
    with pytest.raises(InvalidValues, match="jobs from there: 'no' is not a whole number from 1"):
        check("jobs", "no", "there")
