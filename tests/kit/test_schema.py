"""The check of answers against the manifest notices what a caller would stumble over."""

from typing import Any

import pytest

from sampletool.kit.testing.schema import problems_of
from sampletool.kit.testing.tool import Tool


@pytest.fixture
def answer(tool: Tool) -> dict[str, Any]:
    return tool("config", "explain", "jobs").answer


def test_a_right_answer_has_no_problem(answer: dict[str, Any]) -> None:
    assert problems_of(answer) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"key": None}, "answer.data.key is None, not string"),
        ({"source": "thin air"}, "answer.data.source is 'thin air', not one of"),
        ({"more": 1}, "answer.data.more is not in the schema"),
        ({"sources": [{}]}, "answer.data.sources[0].source is missing"),
    ],
)
def test_what_the_schema_does_not_say_is_a_problem(
    answer: dict[str, Any], change: dict[str, Any], problem: str
) -> None:
    answer["data"] |= change

    assert problem in problems_of(answer)[0]


def test_the_envelope_is_checked_too(answer: dict[str, Any]) -> None:
    del answer["warnings"]
    answer["meta"] |= {"exit_code": True, "mood": "good"}

    assert problems_of(answer) == [
        "answer.warnings is missing",
        "answer.meta.exit_code is True, not integer",
        "answer.meta.mood is not in the schema",
    ]
