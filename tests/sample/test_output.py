"""output.py: nobody is ever silently overwritten, with a shared lock or without one."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.file_errors import OutputExists
from sampletool.kit.places import session_root
from sampletool.sample.output import OutputEffect, check_output, lock_path, publish

COLUMNS = [{"a": 1}, {"b": 2}]


def put(path: Path, inputs: str = "abc") -> OutputEffect:
    return publish(path, {"inputs": [inputs]}, COLUMNS)


def look_for(path: Path, inputs: str = "abc") -> OutputEffect:
    return check_output(path, {"inputs": [inputs]})[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.json"


def test_a_result_is_json_and_contains_its_identity(path: Path) -> None:
    assert put(path) == "created"

    written = json.loads(path.read_bytes())
    assert written["about"] == {"inputs": ["abc"]}
    assert written["columns"] == COLUMNS
    assert len(path.read_bytes().splitlines()) == 5


def test_the_same_result_is_found(path: Path) -> None:
    put(path)

    assert check_output(path, {"inputs": ["abc"]}) == ("unchanged", COLUMNS)


def test_another_result_is_refused(path: Path) -> None:
    put(path)
    before = path.read_bytes()

    with pytest.raises(OutputExists) as refused:
        look_for(path, "other")

    assert "delete it" in refused.value.suggestion
    assert "--session-id" in refused.value.suggestion
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "description"),
    [
        (b"", "this command did not create it"),
        (b"notes of mine\n", "this command did not create it"),
        (b'{"about":1,\n', "it was changed after this command created it"),
        (
            b'{"about":{"identity":{"inputs":["abc"]}},\n',
            "it was changed after this command created it",
        ),
    ],
)
def test_a_file_that_we_did_not_write_is_refused(
    path: Path, content: bytes, description: str
) -> None:
    path.write_bytes(content)

    with pytest.raises(OutputExists, match=description):
        look_for(path)

    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-10], lambda text: text.replace(b'"b":2', b'"b":3')]
)
def test_a_result_that_was_cut_or_edited_is_not_taken_for_the_result(
    path: Path, damage: Any
) -> None:
    put(path)
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(OutputExists, match="changed after"):
        look_for(path)


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "fifo"])
def test_something_other_than_a_file_is_never_replaced(
    path: Path, tmp_path: Path, kind: str
) -> None:
    target = tmp_path / "target"
    if kind == "link":
        target.write_text("mine")
    if "link" in kind:
        path.symlink_to(target)
    elif kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)

    with pytest.raises(OutputExists):
        put(path)

    assert kind != "link" or target.read_text() == "mine"


def test_the_umask_decides_who_may_read_a_new_result(path: Path) -> None:
    umask = os.umask(0o027)
    try:
        put(path)
    finally:
        os.umask(umask)

    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("theirs", ["theirs", "abc"])
def test_the_result_of_a_faster_command_without_our_lock_stays(
    path: Path, theirs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same result is no reason to complain."""
    link = os.link

    def link_after_another(temporary: Path, place: Path, **given: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        put(path, theirs)
        os.link(temporary, place, **given)

    monkeypatch.setattr(os, "link", link_after_another)
    if theirs == "abc":
        assert put(path) == "unchanged"
    else:
        with pytest.raises(OutputExists):
            put(path)

    assert json.loads(path.read_bytes())["about"] == {"inputs": [theirs]}
    assert not [name for name in os.listdir(path.parent) if name.endswith(".tmp")]


def test_a_directory_by_another_name_has_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    locks = {lock_path(tmp_path / name / "out.json") for name in ("real", "link")}

    assert len(locks) == 1
    assert lock_path(tmp_path / "real" / "other.json") not in locks
    assert not str(*locks).startswith(str(tmp_path / "real"))


def test_the_lock_of_a_session_s_result_goes_with_the_session() -> None:
    path = session_root() / "s" / "result.json"

    assert lock_path(path).parent == path.parent


def test_checking_an_output_creates_nothing(path: Path, home: Path) -> None:
    effects = [look_for(path)]
    left = [*path.parent.glob("*.json"), *home.glob("xdg_state_home/*")]
    put(path)
    effects.append(look_for(path))
    with pytest.raises(OutputExists):
        look_for(path, "new")

    assert effects == ["created", "unchanged"]
    assert left == []


@pytest.mark.leaves_litter
def test_temporary_files_are_removed_only_if_they_are_old(path: Path) -> None:
    old, new = (path.with_name(f".{path.name}.{pid}-0123abcd.tmp") for pid in (1, 2))
    old.write_text("half")
    new.write_text("half")
    two_hours_ago = time.time() - 7200
    os.utime(old, (two_hours_ago, two_hours_ago))

    put(path)

    assert not old.exists()
    assert new.exists()


def test_a_link_to_the_same_result_is_refused(path: Path) -> None:
    """The link may lead to a file of another user, who can change it at any time."""
    real = path.with_name("real.json")
    put(real)
    path.symlink_to(real)

    with pytest.raises(OutputExists, match="it is not a readable file"):
        look_for(path)
