"""tool fork --with state: what a part needs comes along with it."""

from sampletool.kit.testing.tool import Tool


def test_what_a_chosen_part_needs_comes_along(tool: Tool) -> None:
    tool("fork", "acme", "--with", "state")

    tree = tool.cwd / "acme"
    assert "psycopg" in (tree / "pyproject.toml").read_text()
    assert (tree / "Makefile").read_text().count("EXTRAS") == 1
    assert "(state/" in (tree / "docs" / "index.md").read_text()
    assert "(lab/" not in (tree / "docs" / "index.md").read_text()


def test_a_part_that_is_mistyped_is_recognised(tool: Tool) -> None:
    ran = tool("fork", "acme", "--with", "stat")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert "Did you mean 'state'?" in ran.error["suggestion"]
