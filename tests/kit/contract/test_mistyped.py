"""What is refused as a name, and what is not."""

import pytest

from sampletool.kit.contract.mistyped import Mistyped, begins_as_json, check_name, check_path


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("undefined", ""),
        ("level\n", "level"),
        ("a%2Fb", "a/b"),
        ("\u2013level", "level"),
        ('"level"', "level"),
        ('{"a": 1', ""),
        ("\uff4c\uff45vel", "level"),
        ("cafe\u0301", "caf\u00e9"),
        ("l\u0435vel", ""),
    ],
)
def test_what_is_probably_no_name_is_refused_with_what_was_meant(text: str, meant: str) -> None:
    with pytest.raises(Mistyped) as refused:
        check_name(text)

    assert refused.value.suggestion == (f"Did you mean '{meant}'?" if meant else refused.value.suggestion)
    assert ("Did you mean" in refused.value.suggestion) == bool(meant)


@pytest.mark.parametrize(
    "text",
    [
        "level",
        "-x",
        "run-7",
        "100%",
        "\u0441\u0447\u0451\u0442",
        "\u65e5\u672c",
        "a/b:c",
        "[x]",
        "nullable",
        "ms-\u043c\u0441",
    ],
)
def test_what_may_be_a_name_is_one(text: str) -> None:
    check_name(text)


def test_a_path_may_have_any_letters() -> None:
    check_path("[2026]/cafe\u0301/\uff4c.json")


@pytest.mark.parametrize(
    ("text", "is_json"), [('{"a', True), ("[1,", True), ("{}", True), ("[urgent] x", False), ("{name}", False)]
)
def test_what_begins_as_json(text: str, is_json: bool) -> None:
    assert begins_as_json(text) == is_json
