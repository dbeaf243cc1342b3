"""tool fork --with state: what a part needs comes along with it."""

import tomllib

from sampletool.kit.testing.tool import Tool


def test_the_dependencies_of_a_part_come_along(tool: Tool) -> None:
    tool("fork", "acme", "--with", "state")

    project = tool.cwd / "acme"
    pyproject = tomllib.loads((project / "pyproject.toml").read_text())
    assert set(pyproject["project"]["optional-dependencies"]) == {"redis", "postgres"}
    assert set(pyproject["dependency-groups"]) == {"dev", "servers"}
    assert (project / "Makefile").read_text().count("EXTRAS") == 1


def test_a_similar_name_is_suggested_for_an_unknown_part(tool: Tool) -> None:
    ran = tool("fork", "acme", "--with", "stat")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert "Did you mean 'state'?" in ran.error["suggestion"]
