"""kit/requirements.py: a project gets the requirements of a newer kit, and nothing else changes."""

from sampletool.kit.requirements import raise_requirements

_NEEDS = """
[project]
dependencies = ["typer>=0.27", "filelock>=4.2,<5"]

[dependency-groups]
dev = ["pytest>=9"]
"""
_PROJECT = """
[project]
name = "acme"
dependencies = [
    "typer>=0.27",
    "filelock>=4.2,<5",  # locks
    "httpx>=1",
]

[dependency-groups]
dev = [
    "pytest-xdist>=3",
    "pytest>=9",
]
"""
_PINS = "filelock==4.2.1\nhttpx==1.2\ntyper==0.27.1\npytest==9.0\npytest-xdist==3.8\n"


def test_if_everything_is_there_nothing_changes() -> None:
    raised = raise_requirements(_NEEDS, _PROJECT, _PINS)

    assert (raised.pyproject, raised.constraints, raised.changes) == (_PROJECT, _PINS, [])


def test_another_version_is_replaced_in_its_place_and_its_pin_is_removed() -> None:
    needs = _NEEDS.replace("filelock>=4.2,<5", "filelock>=4.3,<5")

    raised = raise_requirements(needs, _PROJECT, _PINS)

    expected = _PROJECT.replace('"filelock>=4.2,<5",  # locks', '"filelock>=4.3,<5",  # locks')
    assert raised.pyproject == expected
    assert raised.constraints == _PINS.replace("filelock==4.2.1\n", "")
    assert raised.changes == [
        "pyproject.toml: added filelock>=4.3,<5",
        "constraints.txt: removed the pin of filelock",
    ]


def test_a_package_whose_name_begins_like_another_one_is_left_alone() -> None:
    raised = raise_requirements(_NEEDS.replace("pytest>=9", "pytest>=9.1"), _PROJECT, _PINS)

    assert '"pytest-xdist>=3"' in raised.pyproject
    assert '"pytest>=9.1"' in raised.pyproject
    assert "pytest-xdist==3.8\n" in raised.constraints
    assert "pytest==9.0" not in raised.constraints


def test_a_new_requirement_is_added_to_its_own_list() -> None:
    needs = _NEEDS.replace('"pytest>=9"', '"pytest>=9", "ruff>=1"')
    needs = needs.replace('"typer>=0.27"', '"typer>=0.27", "wcwidth>=0.3"')

    raised = raise_requirements(needs, _PROJECT, _PINS)

    assert 'dependencies = [\n    "wcwidth>=0.3",\n    "typer>=0.27",\n' in raised.pyproject
    assert 'dev = [\n    "ruff>=1",\n    "pytest-xdist>=3",\n' in raised.pyproject
    assert raised.constraints == _PINS


def test_the_extras_of_a_requirement_do_not_hide_it() -> None:
    project = _PROJECT.replace('"typer>=0.27"', '"typer[all]>=0.20"')

    raised = raise_requirements(_NEEDS, project, _PINS)

    assert raised.pyproject == _PROJECT
