"""The wheel is complete: a real one is built and looked at, and it works when it is installed."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from sampletool import REPOSITORY
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.testing.schema import described

_MAN_DIRECTORY = "man/man1/"
_OTHER_SHARED_FILES = {
    f"bash-completion/completions/{PROGRAM}",
    f"zsh/site-functions/_{PROGRAM}",
    f"fish/vendor_completions.d/{PROGRAM}.fish",
    f"{PROGRAM}/SKILL.md",
}
_MAN_SECTIONS = {
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "EXIT STATUS",
    "ENVIRONMENT",
    "FILES",
    "EXAMPLES",
    "SEE ALSO",
}


@dataclass(frozen=True)
class Wheel:
    """A wheel that was built from this project."""

    path: Path
    names: list[str]
    """The paths of its files."""
    shared: dict[str, str]
    """The contents of its files below `share`, by their paths there."""
    metadata: Message


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    """Build a wheel. A build takes more than 1 s, so the tests of this file share it."""
    builder = Path(sys.prefix, "bin", "hatchling")
    if not builder.exists():
        pytest.skip("hatchling is not installed: make .venv/.testable")
    directory = tmp_path_factory.mktemp("wheel")
    # This fixture is set up before a test has a home directory, so the build gets one of its own.
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "TMPDIR": str(directory)}
    built = subprocess.run(
        [str(builder), "build", "-t", "wheel", "-d", str(directory)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = directory.glob("*.whl")
    return _read(path)


def _read(path: Path) -> Wheel:
    shared = {}
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for name in names:
            _, separator, shared_path = name.partition("/data/share/")
            if separator:
                shared[shared_path] = archive.read(name).decode()
        (metadata_name,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(metadata_name).decode())
    return Wheel(path=path, names=names, shared=shared, metadata=metadata)


def _man_pages(wheel: Wheel) -> dict[str, str]:
    pages = {}
    for path, content in wheel.shared.items():
        if path.startswith(_MAN_DIRECTORY):
            pages[path.removeprefix(_MAN_DIRECTORY)] = content
    return pages


def test_a_wheel_has_types_and_no_bytecode(wheel: Wheel) -> None:
    assert f"{PACKAGE}/py.typed" in wheel.names
    assert [name for name in wheel.names if "__pycache__" in name] == []


def test_each_command_has_a_man_page_with_all_sections(wheel: Wheel) -> None:
    expected_names = {f"{PROGRAM}.1"}
    for command in described():
        expected_names.add(f"{PROGRAM}-{command.replace('.', '-')}.1")

    pages = _man_pages(wheel)

    assert pages.keys() == expected_names
    for name, page in pages.items():
        sections = re.findall(r"^\.SH (.+)$", page, re.MULTILINE)
        assert set(sections) >= _MAN_SECTIONS, name


def test_groff_has_nothing_to_say_about_a_man_page(wheel: Wheel, tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for name, page in _man_pages(wheel).items():
        (tmp_path / name).write_text(page)

    names = sorted(_man_pages(wheel))
    checked = subprocess.run(
        ["groff", "-man", "-ww", "-z", *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert checked.stderr == ""


def test_the_other_shared_files_are_completion_and_a_page_for_agents(wheel: Wheel) -> None:
    other_files = set()
    for path in wheel.shared:
        if not path.startswith(_MAN_DIRECTORY):
            other_files.add(path)

    assert other_files == _OTHER_SHARED_FILES
    assert "| `config set` | settings |" in wheel.shared[f"{PROGRAM}/SKILL.md"]


def test_the_readme_of_a_wheel_can_be_read_on_an_index(wheel: Wheel) -> None:
    links = re.findall(r"\]\(([^)]+)\)", str(wheel.metadata.get_payload()))

    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    addresses = {}
    for entry in wheel.metadata.get_all("Project-URL", []):
        name, _, address = entry.partition(", ")
        addresses[name] = address
    assert addresses["Repository"] == REPOSITORY
    assert [each for each in addresses.values() if not each.startswith(REPOSITORY)] == []


def test_the_classifiers_name_topics_and_no_system_without_tests(wheel: Wheel) -> None:
    classifiers = wheel.metadata.get_all("Classifier", [])

    assert [each for each in classifiers if each.startswith("Topic :: ")]
    systems = [each for each in classifiers if each.startswith("Operating System :: ")]
    assert systems == ["Operating System :: POSIX :: Linux"]


def test_an_installed_wheel_works(wheel: Wheel, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    subprocess.run(
        [
            sys.executable,
            *("-m", "pip", "install", "-q", "--no-index", "--no-deps"),
            *("--target", str(target), str(wheel.path)),
        ],
        check=True,
    )

    # A fresh interpreter: a forked one has imported this project, not the wheel.
    completed = subprocess.run(
        [sys.executable, "-m", PACKAGE, "config", "set", "key1", "val1", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert (target / "share" / _MAN_DIRECTORY / f"{PROGRAM}.1").is_file()
