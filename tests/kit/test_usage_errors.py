"""sampletool/kit/usage_errors.py: each mistake in a command line has its place and its hint."""

import json
import shlex
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from sampletool.kit.app import run_in_process
from sampletool.kit.contract.errors import Mistake
from sampletool.kit.contract.mistyped import Mistyped
from sampletool.kit.safety.signals import Signals
from sampletool.kit.usage_errors import describe_error


def mistakes_in(words: str) -> list[dict[str, Any]]:
    """Return the mistakes in a command line."""
    response = json.loads(run_in_process(shlex.split(words), Signals()))
    mistakes: list[dict[str, Any]] = response["error"].get("errors", [])
    return mistakes


def _mistake(
    param: str,
    code: str,
    message: str,
    hint: str | None = None,
    corrected: str | None = None,
) -> dict[str, Any]:
    mistake = {"param": param, "code": code, "message": message}
    if hint is not None:
        mistake["suggestion"] = hint
    if corrected is not None:
        mistake["corrected_input"] = corrected
    return mistake


_NOPE = _mistake("--nope", "UNKNOWN_OPTION", "No such option: --nope")
_NO_X = _mistake("-x", "UNKNOWN_OPTION", "No such option: -x")
_NO_5 = _mistake(
    "-5",
    "UNKNOWN_OPTION",
    "No such option: -5",
    "If -5 is the start of a value, put `--` before the value.",
)
_EXTRA_X = _mistake("ARGUMENTS", "EXTRA_ARGUMENT", "Got unexpected extra argument(s) (x)")
_NO_KEY = _mistake("KEY", "MISSING", "Missing argument 'KEY'")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "config get jobs --rwa",
            _mistake(
                "--rwa",
                "UNKNOWN_OPTION",
                "No such option: --rwa",
                "Did you mean '--raw'?",
                corrected="--raw",
            ),
        ),
        (
            "config get jobs --quite",
            _mistake(
                "--quite",
                "UNKNOWN_OPTION",
                "No such option: --quite",
                "Did you mean '--quiet'?",
                corrected="--quiet",
            ),
        ),
        ("config list --nope", _NOPE),
        ("config list --nope=5", _NOPE),
        ("config set a -50", _NO_5),
        ("config list -x", _NO_X),
        (
            "config list --after",
            _mistake(
                "--after",
                "INVALID_VALUE",
                "Option '--after' requires an argument",
                "Use `--after CURSOR`.",
            ),
        ),
        (
            "config list -C",
            _mistake(
                "-C",
                "INVALID_VALUE",
                "Option '-C' requires an argument",
                "Use `-C DIR`.",
            ),
        ),
        (
            "config list --quiet=x",
            _mistake("--quiet", "INVALID_VALUE", "Option '--quiet' does not take a value"),
        ),
        (
            "config list --limit 0",
            _mistake(
                "--limit",
                "INVALID_VALUE",
                "Invalid value for '--limit': 0 is not in the range 1<=x<=10000",
            ),
        ),
        ("config get", _NO_KEY),
        ("config path x", _EXTRA_X),
    ],
)
def test_a_mistake_is_described_with_its_place_and_a_hint(
    words: str,
    expected: dict[str, Any],
) -> None:
    assert mistakes_in(words) == [expected]


# A check of ours knows more than Typer


@pytest.mark.parametrize(
    ("parameter_type", "expected"),
    [("argument", "[NAME]"), ("option", "--name")],
)
def test_the_value_and_the_hint_of_a_check_of_ours_are_kept(
    parameter_type: str,
    expected: str,
) -> None:
    parameter: Any = SimpleNamespace(
        param_type_name=parameter_type,
        name="name",
        opts=["--name", "-n"],
    )
    known: list[dict[str, Any]] = [
        {"name": "other", "metavar": "OTHER"},
        {"name": "name", "metavar": "TEXT", "flags": ["--name"]},
        {"name": "name", "metavar": "[NAME]"},
    ]
    error: Any = SimpleNamespace(
        param=parameter,
        format_message=lambda: "It is percent-encoded.",
        __cause__=Mistyped("It is percent-encoded", "%20a", " a"),
    )

    mistake = describe_error(error, known)

    assert mistake == Mistake(
        param=expected,
        code="INVALID_VALUE",
        message="It is percent-encoded",
        value="%20a",
        suggestion="Did you mean ' a'?",
    )


def test_an_argument_that_is_not_described_is_called_by_its_name() -> None:
    parameter: Any = SimpleNamespace(param_type_name="argument", name="name", opts=["name"])
    error: Any = typer.BadParameter("wrong", param=None)
    error.param = parameter
    error.format_message = lambda: "wrong"

    assert describe_error(error, []) == Mistake("name", "INVALID_VALUE", "wrong")
