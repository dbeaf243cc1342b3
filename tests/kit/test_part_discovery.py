"""kit/part_discovery.py: a part is a folder. The kit finds what it offers by the names of files."""

import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit import part_discovery
from sampletool.kit.program import KIT, KIT_DIRECTORY, PACKAGE


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a package without parts, which the kit takes for the program's."""
    directory = tmp_path / "package"
    directory.mkdir()
    monkeypatch.setattr(part_discovery, "PACKAGE_DIRECTORY", str(directory))
    part_discovery.part_names.cache_clear()
    return directory


@pytest.fixture(autouse=True)
def no_cache() -> None:
    part_discovery.part_names.cache_clear()


def add_module(package: Path, path: str) -> None:
    (package / path).parent.mkdir(parents=True, exist_ok=True)
    (package / path).write_text("")


def test_a_package_without_folders_has_no_parts(package: Path) -> None:
    assert part_discovery.part_names() == []


def test_parts_are_sorted_by_name(package: Path) -> None:
    add_module(package, "beta/__init__.py")
    add_module(package, "alpha/__init__.py")

    assert part_discovery.part_names() == ["alpha", "beta"]


@pytest.mark.parametrize(
    "path",
    ["kit/__init__.py", "notes.txt", "old/__pycache__/x.pyc", ".new-kit/__init__.py"],
)
def test_what_is_not_a_part_is_passed_over(package: Path, path: str) -> None:
    """A kit that is being replaced is in `.new-kit`. Commands that run meanwhile ignore it."""
    add_module(package, path)

    assert part_discovery.part_names() == []


def test_the_commands_of_the_kit_come_first_and_a_part_may_have_none(package: Path) -> None:
    add_module(package, "alpha/__init__.py")
    add_module(package, "beta/__init__.py")
    add_module(package, "beta/commands/__init__.py")

    assert part_discovery.command_packages() == [f"{KIT}.commands", f"{PACKAGE}.beta.commands"]


def test_packages_of_the_kit_and_of_parts_have_different_directories(package: Path) -> None:
    directory_in_kit = part_discovery.directory_of(f"{KIT}.commands.config")
    directory_in_part = part_discovery.directory_of(f"{PACKAGE}.beta.commands")

    assert directory_in_kit == f"{KIT_DIRECTORY}/commands/config"
    assert directory_in_part == f"{package}/beta/commands"


def test_only_the_parts_with_a_module_offer_it() -> None:
    names = [module.__name__ for module in part_discovery.offered("settings")]

    assert f"{PACKAGE}.state.settings" in names
    assert f"{PACKAGE}.lab.settings" not in names


def test_the_module_lists_the_parts_as_a_program() -> None:
    # A fresh interpreter, because a forked one has loaded the module under its own name.
    command = [sys.executable, "-m", f"{KIT}.parts"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert listed.split() == part_discovery.part_names()
