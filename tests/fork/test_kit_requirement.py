"""sampletool/fork/kit_requirement.py: where a project gets the kit from."""

from pathlib import Path

import pytest

from sampletool.fork.kit_requirement import is_direct, requirement_of
from sampletool.kit.testing.failing import failure_of


@pytest.mark.parametrize(
    "text",
    ["sampletool", "sampletool>=0.3", "sampletool == 0.3.*", "sampletool>=0.3,<0.4"],
)
def test_a_requirement_on_an_index_is_taken_as_it_is(tmp_path: Path, text: str) -> None:
    assert requirement_of(text, tmp_path) == text
    assert not is_direct(text)


@pytest.mark.parametrize(
    "address",
    ["https://example.org/sampletool-0.3-py3-none-any.whl", "git+https://example.org/x.git@v0.3"],
)
@pytest.mark.parametrize("prefix", ["", "sampletool @ "])
def test_an_address_becomes_a_direct_requirement(
    tmp_path: Path,
    prefix: str,
    address: str,
) -> None:
    requirement = requirement_of(prefix + address, tmp_path)

    assert requirement == f"sampletool @ {address}"
    assert is_direct(requirement)


def test_a_wheel_becomes_a_requirement_with_its_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "my wheels").mkdir()
    wheel = tmp_path / "my wheels" / "sampletool-0.3-py3-none-any.whl"
    wheel.touch()

    requirement = requirement_of("my wheels/sampletool-0.3-py3-none-any.whl", tmp_path)

    assert requirement == f"sampletool @ {wheel.as_uri()}"
    assert "my%20wheels" in requirement


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("other>=0.3", "neither a requirement on sampletool"),
        ("sampletool>=", "neither a requirement on sampletool"),
        ("sampletool; os_name == 'nt'", "neither a requirement on sampletool"),
        ('https://example.org/"', "neither a requirement on sampletool"),
        ("missing.whl", "does not exist"),
        ("directory.whl", "does not exist"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "directory.whl").mkdir()

    error = failure_of(lambda: requirement_of(text, tmp_path))

    assert isinstance(error, ValueError)
    assert reason in str(error)
