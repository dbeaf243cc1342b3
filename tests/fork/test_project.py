"""sampletool/fork/project.py: which files a new project has, and what is in them."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import pytest

from sampletool.fork.project import TEMPLATE, new_project, offered_parts
from sampletool.fork.source import source_files
from sampletool.kit.contract.file_errors import EditRefused
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.testing.failing import failure_of
from tests.fork.support import NAME_OF_ORIGINAL, make_choice

_REQUIREMENT = f"{PACKAGE}>=0.3"
_FROM_FILE = f"{PACKAGE} @ file:///kit.whl"
_KIT = f"{PACKAGE}.kit"


@cache
def files_of(**changes: Any) -> Mapping[str, str]:
    """Return the files of a new project, as text.

    They are cached, because many tests look at the same project.
    """
    files = new_project(source_files(), make_choice(**changes))
    texts = {path: content.decode(errors="replace") for path, content in files.items()}
    return MappingProxyType(texts)


def pyproject_of(files: Mapping[str, str]) -> dict[str, Any]:
    return tomllib.loads(files["pyproject.toml"])


def test_the_kit_has_the_same_bytes() -> None:
    files = new_project(source_files(), make_choice(name="acme-stock", command="stock"))

    kit = {}
    for path, content in source_files().items():
        if path.startswith(f"{PACKAGE}/kit/"):
            kit[path.replace(PACKAGE, "acme_stock", 1)] = content
    for path in kit:
        assert files[path] == kit[path], path
    extra = {path for path in files if path.startswith("acme_stock/kit/")} - set(kit)
    assert extra == {"acme_stock/kit/CHECKSUMS"}


@pytest.mark.parametrize("parts", [frozenset(), frozenset(offered_parts())])
def test_a_project_has_no_tests_and_no_pages_of_the_kit_or_of_this_project(
    parts: frozenset[str],
) -> None:
    files = files_of(parts=parts, ci="github")

    assert [path for path in files if path.startswith("docs/")] == []
    assert [path for path in files if path.startswith("tests/kit/")] == []
    for path in files:
        folders = path.split("/")[:-1]
        assert not {"project", "mutants", "bench", "template"} & set(folders), path
    text = "\n".join(files[path] for path in files if "/kit/" not in path)
    assert not re.search(r"^ *(from|import) (docs|tests\.kit)\b", text, re.MULTILINE)


@pytest.mark.parametrize("parts", [frozenset(), frozenset(offered_parts())])
def test_nothing_in_it_has_the_names_of_this_project(parts: frozenset[str]) -> None:
    files = dict(files_of(name="acme-stock", command="stock", parts=parts, ci="github"))

    license_text = files.pop("LICENSE")
    assert f"The {PACKAGE} maintainers" in license_text
    found = []
    for path, text in files.items():
        if path.startswith("acme_stock/kit/"):
            continue
        for match in NAME_OF_ORIGINAL.finditer(f"/{path}\n{text}"):
            found.append((path, match[0]))
    # The README says where newer kits come from.
    assert set(found) == {("README.md", PACKAGE)}
    lines = [line for line in files["README.md"].splitlines() if PACKAGE in line]
    assert len(lines) == 1


def test_a_project_that_depends_on_the_kit_has_no_line_of_it() -> None:
    files = files_of(kit="dependency", kit_requirement=_REQUIREMENT)

    assert [path for path in files if "kit" in path] == ["ruff-kit.toml"]
    assert "cache-dir" not in files["ruff-kit.toml"]
    own_script = (ROOT / PACKAGE / "kit" / "environment.sh").read_text()
    assert files["environment.sh"] == own_script
    assert "sh environment.sh" in files["Makefile"]
    assert pyproject_of(files)["project"]["dependencies"] == [_REQUIREMENT]
    assert f"from {_KIT}.start import main as run" in files["acme/__main__.py"]
    assert 'run(package="acme")' in files["acme/__main__.py"]
    assert 'os.environ["KIT_PACKAGE"] = "acme"' in files["tests/conftest.py"]
    assert f'pytest_plugins = ["{_KIT}.testing.plugin"]' in files["tests/conftest.py"]
    assert "export KIT_PACKAGE := acme" in files["Makefile"]
    assert f"KIT := {_KIT}\n" in files["Makefile"]
    assert "include" not in files["Makefile"]
    for path, text in files.items():
        assert "acme.kit" not in text, path
        assert not re.search(r"from \.+kit\b", text), path


def test_copied_parts_import_a_kit_that_is_a_dependency() -> None:
    parts = frozenset(offered_parts())
    files = files_of(kit="dependency", kit_requirement=_REQUIREMENT, parts=parts)

    assert f"from {_KIT}.context import Context" in files["acme/state/commands/task/add.py"]
    assert "from acme.state." in files["tests/state/test_sqlite.py"]
    assert f"from {_KIT}.testing." in files["tests/state/test_sqlite.py"]
    for path, text in files.items():
        assert "acme.kit" not in text, path
        assert not re.search(r"from \.+kit\b", text), path


def test_only_a_direct_requirement_needs_a_permission() -> None:
    from_index = files_of(kit="dependency", kit_requirement=_REQUIREMENT)
    from_file = files_of(kit="dependency", kit_requirement=_FROM_FILE)

    assert "metadata" not in pyproject_of(from_index)["tool"]["hatch"]
    hatch = pyproject_of(from_file)["tool"]["hatch"]
    assert hatch["metadata"] == {"allow-direct-references": True}


def test_a_vendored_kit_needs_the_same_packages_as_this_project() -> None:
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())
    created = pyproject_of(files_of())

    assert created["project"]["dependencies"] == own["project"]["dependencies"]
    assert created["dependency-groups"]["dev"] == own["dependency-groups"]["dev"]


@pytest.mark.parametrize("part", offered_parts())
def test_a_part_comes_along_and_no_other_one(part: str) -> None:
    files = files_of(parts=frozenset([part]), ci="github")

    folders = set()
    for path in files:
        folders.update(path.split("/")[:-1])
    assert folders & {"fork", *offered_parts()} == {part}
    assert f"acme/{part}/__init__.py" in files
    assert any(path.startswith(f"tests/{part}/test_") for path in files)
    excluded = pyproject_of(files)["tool"]["ruff"]["extend-exclude"]
    assert excluded == [f"acme/{part}", f"tests/{part}"]


@pytest.mark.parametrize("part", offered_parts())
def test_lines_of_a_part_about_another_part_stay_behind(part: str) -> None:
    source = source_files()
    guide = f"Kept. <!-- {part} -->\nLeft out. <!-- fork -->\n"
    source[f"{PACKAGE}/{part}/guide.md"] = guide.encode()

    files = new_project(source, make_choice(parts=frozenset([part])))

    assert files[f"acme/{part}/guide.md"].decode() == f"Kept. <!-- {part} -->\n"


def test_without_parts_no_line_is_about_one() -> None:
    files = files_of(ci="github")

    assert "psycopg" not in files["pyproject.toml"]
    assert "extend-exclude" not in files["pyproject.toml"]
    assert "EXTRAS" not in files["Makefile"]
    mentioned = set(re.findall(rf"\b(?:{'|'.join(offered_parts())})\b", files["README.md"]))
    assert mentioned == set()
    for path, text in files.items():
        if path.startswith("acme/kit/"):
            continue
        assert not re.search(r"(# |<!-- )(vendored|dependency|github|url)\b", text), path
        assert "@@" not in text, path


def test_lines_about_parts_in_the_makefiles_are_those_of_this_project() -> None:
    own = _lines_about_parts("Makefile")
    vendored = _lines_about_parts(f"{TEMPLATE}vendored/Makefile")
    dependency = _lines_about_parts(f"{TEMPLATE}dependency/Makefile")

    assert vendored == dependency
    # This project also has targets of its own.
    assert vendored <= own


def _lines_about_parts(path: str) -> set[str]:
    marks = tuple(f"# {part}" for part in offered_parts())
    lines = set()
    for line in (ROOT / path).read_text().splitlines():
        if line.endswith(marks):
            lines.add(line.replace(":=", "+="))
    return lines


def test_lines_about_parts_in_pyproject_are_those_of_this_project() -> None:
    own = _lines_about_parts("pyproject.toml")
    created = _lines_about_parts(f"{TEMPLATE}pyproject.template")

    assert created - own == set()
    # A project has neither pyright nor pages.
    missing = {
        '    "sampletool/sample/example",  # sample',
        'exclude = ["docs/lab/**/*.md"]  # lab',
    }
    assert own - created <= missing


def test_the_metadata_is_that_of_the_new_project() -> None:
    files = files_of(
        author='Ann "A" B',
        description="Counts.",
        license_holder="Acme \\1 Ltd",
        repository="https://example.org/acme",
        documentation="https://example.org/docs",
    )

    project = pyproject_of(files)["project"]
    assert (project["name"], project["description"]) == ("acme", "Counts.")
    assert project["authors"] == [{"name": 'Ann "A" B'}]
    assert project["scripts"] == {"acme": "acme.__main__:main"}
    assert project["urls"] == {
        "Repository": "https://example.org/acme",
        "Documentation": "https://example.org/docs",
    }
    assert 'REPOSITORY = "https://example.org/acme"' in files["acme/__init__.py"]
    assert 'DOCUMENTATION = "https://example.org/docs"' in files["acme/__init__.py"]
    assert re.search(r"^Copyright \(c\) \d{4} Acme \\1 Ltd$", files["LICENSE"], re.MULTILINE)


def test_without_addresses_there_are_none() -> None:
    files = files_of()

    assert "urls" not in pyproject_of(files)["project"]
    assert 'REPOSITORY = ""\n' in files["acme/__init__.py"]


def test_a_description_can_have_quotes_and_backslashes() -> None:
    files = files_of(description='Counts """screws""" \\ bolts')

    namespace: dict[str, Any] = {}
    exec(files["acme/__init__.py"], namespace)  # noqa: S102 - only four constants
    assert namespace["__doc__"] == 'Counts """screws""" \\ bolts'


def test_texts_of_the_user_are_not_renamed() -> None:
    files = files_of(author=f"{PACKAGE} fans", description=f"Like `{PROGRAM}`")

    project = pyproject_of(files)["project"]
    assert project["authors"] == [{"name": f"{PACKAGE} fans"}]
    assert project["description"] == f"Like `{PROGRAM}`"
    assert f"Like `{PROGRAM}`" in files["README.md"]


@pytest.mark.parametrize(("name", "command"), [("acme", f"my-{PROGRAM}"), (PROGRAM, "acme")])
def test_a_new_name_can_contain_an_old_one(name: str, command: str) -> None:
    files = files_of(name=name, command=command)

    pyproject = pyproject_of(files)
    assert pyproject["project"]["scripts"] == {command: f"{name}.__main__:main"}
    assert pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [name]
    assert f"run `{command} inventory list`" in files["README.md"]


def test_metadata_that_cannot_be_changed_safely_are_reported() -> None:
    source = source_files()
    path = f"{TEMPLATE}pyproject.template"
    source[path] = source[path].replace(b"description = ", b"description.short = ", 1)

    error = failure_of(lambda: new_project(source, make_choice()))

    assert isinstance(error, EditRefused)
    assert error.context["key"] == "project.description"
    assert "project.description is a table, not a value" in error.message


_CI_FILES = {
    ".github/dependabot.yml",
    ".github/workflows/check.yml",
    ".github/workflows/release.yml",
    ".pre-commit-config.yaml",
}


def test_workflows_come_along_only_if_the_user_wants_them() -> None:
    without = files_of()
    with_workflows = files_of(ci="github")

    assert set(with_workflows) - set(without) == _CI_FILES
    assert "zizmor" not in without["pyproject.toml"]
    groups = pyproject_of(with_workflows)["dependency-groups"]
    assert set(groups) == {"dev", "workflows", "release"}


def test_the_readme_says_how_to_upgrade_the_kit() -> None:
    vendored = files_of()["README.md"]
    dependent = files_of(kit="dependency", kit_requirement=_REQUIREMENT)["README.md"]

    assert "make upgrade FROM=" in vendored
    assert "make upgrade" not in dependent
    assert "change the requirement in `pyproject.toml`, then run" in dependent


def test_both_makefiles_have_the_same_targets() -> None:
    kit_makefile = (ROOT / PACKAGE / "kit" / "kit.mk").read_text()
    dependent = files_of(kit="dependency", kit_requirement=_REQUIREMENT)["Makefile"]

    targets = {"help", "run", "test", "check", "new-command", "how-to", "pages", "clean"}
    assert targets == _targets_of(dependent)
    assert targets <= _targets_of(kit_makefile)
    # The same variables select what is created.
    in_kit = _recipe_of("new-command", kit_makefile).replace("$(PACKAGE).kit.", "$(KIT).")
    assert _recipe_of("new-command", dependent) == in_kit


def _recipe_of(target: str, makefile: str) -> str:
    """Return the lines of a target in the text of a Makefile."""
    return makefile.partition(f"\n{target}:")[2].partition("\n\n")[0]


def _targets_of(makefile: str) -> set[str]:
    """Return the targets that `make help` shows."""
    return set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
