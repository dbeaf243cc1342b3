"""output.py: nobody is ever silently overwritten, with a shared lock or without one."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.file_errors import OutputExists, UnsafePath
from sampletool.kit.safety.places import session_root
from sampletool.sample.output import Published, Result, forecast, lock_path, publish

RESULT = Result({"rows": 1}, "items", [{"a": 1}, {"b": 2}])


def put(path: Path, identity: dict[str, Any], *, overwrite: bool = False, **given: Any) -> Published:
    compute = given.get("compute", lambda: RESULT)
    return publish(path, lambda: identity, compute, overwrite=overwrite)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.json"


def never() -> Result:
    raise AssertionError("it was computed")


def test_a_result_is_json_that_names_what_it_was_made_of(path: Path) -> None:
    published = put(path, {"inputs": ["abc"]})

    written = json.loads(path.read_bytes())
    assert published.effect == "created"
    assert written["about"] == published.about == {"identity": {"inputs": ["abc"]}, "rows": 1}
    assert written["items"] == RESULT.items
    assert len(path.read_bytes().splitlines()) == 5


def test_a_result_that_says_much_about_itself_is_recognized_too(path: Path) -> None:
    wordy = Result({"bad_rows": ["it has 1 instead of 2 cells"] * 100_000}, "items", [])
    put(path, {"inputs": ["abc"]}, compute=lambda: wordy)

    assert put(path, {"inputs": ["abc"]}, compute=never).effect == "unchanged"


def test_the_same_again_is_unchanged_and_is_not_computed(path: Path) -> None:
    first = put(path, {"inputs": ["abc"]})
    before = path.stat()

    for overwrite in (False, True):
        again = put(path, {"inputs": ["abc"]}, compute=never, overwrite=overwrite)

        assert again == Published("unchanged", first.about)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_anything_else_is_refused_before_the_work(path: Path) -> None:
    put(path, {"inputs": ["abc"]})
    before = path.read_bytes()

    with pytest.raises(OutputExists) as refused:
        put(path, {"inputs": ["other"]}, compute=never)

    assert "--overwrite" in refused.value.suggestion
    assert "--session-id" in refused.value.suggestion
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"", b"notes of mine\n", b'{"about":1,\n', b'{"about":{"identity":{"inputs":["abc"]}},\n']
)
def test_a_file_that_we_did_not_write_is_refused_without_even_looking_at_the_inputs(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    with pytest.raises(OutputExists):
        publish(path, never, never, overwrite=False)  # type: ignore[arg-type]

    assert path.read_bytes() == content


@pytest.mark.parametrize("damage", [lambda text: text[:-10], lambda text: text.replace(b'"b":2', b'"b":3')])
def test_a_result_that_was_cut_or_edited_is_not_taken_for_the_result(path: Path, damage: Any) -> None:
    put(path, {"inputs": ["abc"]})
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(OutputExists, match="changed after"):
        put(path, {"inputs": ["abc"]}, compute=never)

    assert put(path, {"inputs": ["abc"]}, overwrite=True).effect == "updated"


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "fifo"])
def test_what_is_not_a_file_is_never_replaced(path: Path, tmp_path: Path, kind: str) -> None:
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
        put(path, {}, compute=never)
    with pytest.raises(UnsafePath):
        put(path, {}, compute=never, overwrite=True)

    assert kind != "link" or target.read_text() == "mine"


def test_overwriting_replaces_it_and_keeps_its_mode(path: Path) -> None:
    path.write_text("old")
    path.chmod(0o640)

    published = put(path, {"inputs": ["abc"]}, overwrite=True)

    assert published.effect == "updated"
    assert json.loads(path.read_bytes())["about"]["rows"] == 1
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_new_result_is_for_all_to_read_whom_the_umask_lets(path: Path, overwrite: bool) -> None:
    umask = os.umask(0o027)
    try:
        put(path, {"inputs": ["abc"]}, overwrite=overwrite)
    finally:
        os.umask(umask)

    assert path.stat().st_mode & 0o777 == 0o640


def test_somebody_without_our_lock_who_was_faster_keeps_what_is_theirs(path: Path) -> None:
    def compute_while_another_publishes() -> Result:
        put(path, {"inputs": ["theirs"]})
        return RESULT

    with pytest.raises(OutputExists):
        put(path, {"inputs": ["ours"]}, compute=compute_while_another_publishes)

    assert json.loads(path.read_bytes())["about"]["identity"] == {"inputs": ["theirs"]}
    assert [entry.name for entry in path.parent.iterdir() if entry.name.endswith(".tmp")] == []


def test_somebody_without_our_lock_who_was_faster_with_the_same_result_did_our_work(path: Path) -> None:
    def compute_while_another_publishes() -> Result:
        put(path, {"inputs": ["abc"]})
        return RESULT

    assert put(path, {"inputs": ["abc"]}, compute=compute_while_another_publishes).effect == "unchanged"


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


def test_a_forecast_says_what_would_happen_and_leaves_nothing(path: Path, home: Path) -> None:
    forecasts = [forecast(path, lambda: {"inputs": ["abc"]}, overwrite=False).effect]
    left = [*path.parent.glob("*.json"), *(home / "xdg_state_home").iterdir()]
    put(path, {"inputs": ["abc"]})
    forecasts.append(forecast(path, lambda: {"inputs": ["abc"]}, overwrite=False).effect)
    forecasts.append(forecast(path, lambda: {"inputs": ["new"]}, overwrite=True).effect)
    with pytest.raises(OutputExists):
        forecast(path, lambda: {"inputs": ["new"]}, overwrite=False)

    assert forecasts == ["created", "unchanged", "updated"]
    assert left == []


def test_litter_of_the_killed_is_removed_and_the_file_of_a_living_writer_is_not(path: Path) -> None:
    old, new = (path.with_name(f".{path.name}.{pid}-0123abcd.tmp") for pid in (1, 2))
    old.write_text("half")
    new.write_text("half")
    os.utime(old, (time.time() - 7200,) * 2)

    put(path, {})

    assert not old.exists()
    assert new.exists()
