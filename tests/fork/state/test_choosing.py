"""tool fork --with state: what a part needs comes along with it."""

import re
import tomllib

from sampletool.fork.project import new_project, offered_parts
from sampletool.fork.source import source_files
from sampletool.kit.testing.tool import Tool
from tests.fork.support import make_choice


def test_the_dependencies_of_a_part_come_along(tool: Tool) -> None:
    tool("fork", "acme", "--with", "state")

    project = tool.cwd / "acme"
    pyproject = tomllib.loads((project / "pyproject.toml").read_text())
    assert set(pyproject["project"]["optional-dependencies"]) == {"redis", "postgres"}
    assert set(pyproject["dependency-groups"]) == {"dev", "servers"}
    assert (project / "Makefile").read_text().count("EXTRAS") == 1


def test_tables_of_the_store_keep_their_names() -> None:
    files = new_project(source_files(), make_choice(parts=frozenset(offered_parts())))

    # In capitals, the name of a table would look like an environment variable.
    table = re.compile(rb"\b(FROM|INTO|JOIN|TABLE|UPDATE) (ACME|acme)_\w+")
    renamed = [path for path, content in files.items() if table.search(content)]
    assert renamed == []


def test_a_similar_name_is_suggested_for_an_unknown_part(tool: Tool) -> None:
    ran = tool("fork", "acme", "--with", "stat")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert "Did you mean 'state'?" in ran.error["suggestion"]
