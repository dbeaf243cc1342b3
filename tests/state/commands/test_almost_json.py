"""An error about a text that is almost JSON proposes the JSON that was probably meant."""

import json

import pytest

from sampletool.kit.testing.tool import Tool
from sampletool.state.commands._almost_json import MAX_CHARACTERS, correct_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2, ]", [1, 2]),
        ("{a: 1, $b: 2}", {"a": 1, "$b": 2}),
        ("{'a': 'b'}", {"a": "b"}),
        ("""{'a': 'it\\'s "b"'}""", {"a": 'it\'s "b"'}),
        ('{"a": 1 // one\n}', {"a": 1}),
        ('{"a": 1 /* one */, # two\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": True, "b": [False, None]}', {"a": True, "b": [False, None]}),
        ('{"url": "http://x//y", "n": -1.5e+3,}', {"url": "http://x//y", "n": -1500.0}),
        ('["a, ]", "it\'s",]', ["a, ]", "it's"]),
    ],
)
def test_what_javascript_or_python_accepts_is_corrected(text: str, value: object) -> None:
    corrected = correct_json(text)

    assert corrected is not None
    assert json.loads(corrected) == value


@pytest.mark.parametrize("text", ['{"a": b}', '{"a": 1', "{1: 2}", '{"a" 1}', '{"a": "b}', "[1 2]"])
def test_a_text_that_can_mean_several_things_is_not_corrected(text: str) -> None:
    assert correct_json(text) is None


def test_a_long_text_is_not_corrected() -> None:
    padding = " " * (MAX_CHARACTERS - len("[1,]"))

    assert correct_json(f"[1,{padding}]") == "[1]"
    assert correct_json(f"[1, {padding}]") is None


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("text", ['{"a": 1,}', '["it\'s", {b: True},]'])
def test_the_correction_is_accepted_when_a_program_sends_it_back(tool: Tool, text: str) -> None:
    refused = tool("state", "set", "plan", text)

    corrected = refused.error["corrected_input"]
    assert refused.error["errors"][0]["corrected_input"] == corrected
    assert tool("state", "set", "plan", corrected).data["value"] == json.loads(corrected)
    assert refused.code == "VALIDATION_ERROR"


@pytest.mark.usefixtures("workspace")
def test_a_text_that_is_not_corrected_has_a_hint_only(tool: Tool) -> None:
    refused = tool("state", "set", "plan", '{"a": ')

    assert "corrected_input" not in refused.error
    assert refused.error["suggestion"].startswith("Correct it.")


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN,}',
        '{"a": 1e999,}',
        '{"a": 1, "a": 2,}',
        "[" * 150 + "," + "]" * 150,
    ],
)
def test_a_correction_that_would_be_refused_again_is_not_proposed(tool: Tool, text: str) -> None:
    refused = tool("state", "set", "plan", text)

    assert refused.code == "VALIDATION_ERROR"
    assert "corrected_input" not in refused.error
