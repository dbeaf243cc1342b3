"""A kit that has changed has another revision, so that projects notice that it is newer."""

from pathlib import Path

import pytest

from tests.project import revision


def test_the_kit_has_a_new_revision_if_it_has_changed() -> None:
    assert revision.is_current(), (
        "The kit has changed since its revision was raised. Run `make revision`. "
        "After a merge conflict in REVISION, take the larger number first."
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
