"""A kit that has changed has another revision, so that projects notice that it is newer."""

import subprocess
from pathlib import Path

import pytest

from tests.project import revision


def test_the_kit_has_a_new_revision_if_it_has_changed() -> None:
    assert revision.is_current(), (
        "The kit has changed since its revision was raised. Run `make revision`. "
        "After a merge conflict in REVISION, take either number first."
    )


def test_the_revision_is_not_lower_than_that_of_an_earlier_commit() -> None:
    assert not revision.is_lowered(), (
        f"The revision is {revision.revision()}, but an earlier commit has "
        f"{revision.highest_committed()}. Run `make revision`."
    )


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a kit with revision 7, which is recorded."""
    kit = tmp_path / "kit"
    kit.mkdir()
    (kit / "REVISION").write_text("7\n")
    (kit / "app.py").write_text("app")
    monkeypatch.setattr(revision, "KIT_FOLDER", kit)
    monkeypatch.setattr(revision, "REVISION_FILE", kit / "REVISION")
    monkeypatch.setattr(revision, "RECORD", tmp_path / "record")
    revision.RECORD.write_text(revision.checksum())
    return kit


def test_the_revision_of_an_unchanged_kit_is_not_raised(kit: Path) -> None:
    revision.main()

    assert revision.is_current()
    assert revision.revision() == 7


@pytest.mark.parametrize("name", ["app.py", "added.py", "REVISION"])
def test_a_changed_kit_is_noticed_until_its_revision_is_raised(kit: Path, name: str) -> None:
    (kit / name).write_text("8\n")
    assert not revision.is_current()
    before = revision.revision()

    revision.main()

    assert revision.is_current()
    assert revision.revision() == before + 1


def test_a_merge_that_lowers_the_revision_is_noticed_until_it_is_raised(kit: Path) -> None:
    _git(kit.parent, "init", "--quiet", "--initial-branch=main")
    _commit_revision(kit, 7)
    _git(kit.parent, "checkout", "--quiet", "-b", "branch")
    _commit_revision(kit, 9)
    _git(kit.parent, "checkout", "--quiet", "main")
    _commit_revision(kit, 8)
    _git(kit.parent, "merge", "--quiet", "--strategy=ours", "--message=merge", "branch")
    assert revision.is_current()
    assert revision.revision() == 8
    assert revision.is_lowered()

    revision.main()

    assert revision.is_current()
    assert revision.revision() == 10
    assert not revision.is_lowered()


def test_without_a_history_no_revision_is_lowered(kit: Path) -> None:
    assert revision.highest_committed() == 0
    assert not revision.is_lowered()


def _commit_revision(kit: Path, number: int) -> None:
    """Commit this revision, and the checksum that belongs to it."""
    (kit / "REVISION").write_text(f"{number}\n")
    revision.RECORD.write_text(revision.checksum())
    _git(kit, "add", "REVISION")
    _git(kit, "commit", "--quiet", f"--message={number}")


def _git(directory: Path, *arguments: str) -> None:
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *author, *arguments], cwd=directory, check=True)
