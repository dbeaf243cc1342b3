"""Outputs appear all at once, and are known to be whole before they are used again."""

import errno
import os
import re
import stat
import tempfile
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from sampletool.kit.testing.failing import outcome_of
from sampletool.kit.testing.scale import scale
from sampletool.sample.journal import BuildRecord
from sampletool.sample.publish import Outputs
from sampletool.sample.trees import force_remove


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".tool").mkdir()
    return tmp_path


@pytest.fixture
def made(root: Path) -> Path:
    """Return the directory that a command has written its outputs to."""
    (root / "made").mkdir()
    return root / "made"


def publish(root: Path, turn: int = 1, **contents: str) -> Outputs:
    """Publish these contents. Each turn, they are written by another command."""
    made = Path(tempfile.mkdtemp(dir=root)) / "t"
    made.mkdir()
    for name, text in contents.items():
        (made / name).write_text(text)
    record = BuildRecord(["make", str(turn)], sorted(contents), {}, {})
    store = outcome_of(lambda: Outputs(root))
    assert isinstance(store, Outputs), repr(store)
    with store:
        note = outcome_of(lambda: store.publish("t", record, made))
    # One test fills the disk.
    if isinstance(note, OSError) and note.errno == errno.ENOSPC:
        raise note
    assert note is None, repr(note)
    return store


def keep(root: Path, *wanted: str) -> Path:
    """Publish these outputs of a directory, and return where they are then."""
    store = Outputs(root)
    store.publish("t", BuildRecord(["make"], [*wanted], {}, {}), root / "made")
    return store.version_directory("t")


def write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)


def test_published_outputs_are_linked_and_undamaged(root: Path) -> None:
    store = publish(root, 1, x="one", y="two")

    assert (root / "out" / "t" / "x").read_text() == "one"
    assert re.fullmatch(r"t-[0-9a-f]{12}\.[0-9a-f]{8}", store.records["t"].version)
    assert os.readlink(root / "out" / "t") == f"../.tool/out/{store.records['t'].version}"
    assert Outputs(root).damage("t") is None


@pytest.mark.parametrize(
    ("input_changes", "need_is_damaged", "note"),
    [
        (False, False, None),
        (True, False, "the input in changed while it ran, so it will be built again"),
        (False, True, "the needed target t changed while it ran, so it will be built again"),
        (True, True, "the input in changed while it ran, so it will be built again"),
    ],
)
def test_what_changed_while_a_command_ran_is_recorded_as_unknown(
    root: Path,
    made: Path,
    input_changes: bool,
    need_is_damaged: bool,
    note: str | None,
) -> None:
    """So the next build builds the target again."""
    unknown = "it is not known which content the command has read"
    store = publish(root, 1, x="one")
    (root / "in").write_text("one")
    digest = store.digest(root / "in")
    need = store.digest_of_outputs("t")
    record = BuildRecord(["make"], ["y"], {"in": digest}, {"t": need}, env={"A": "1"})
    write(made, "y")
    if input_changes:
        (root / "in").write_text("two, and longer")
    if need_is_damaged:
        (root / "out" / "t").unlink()

    shown_note = outcome_of(lambda: store.publish("u", record, made))

    recorded = store.records["u"]
    assert shown_note == note
    assert recorded == BuildRecord(
        run=["make"],
        wanted=["y"],
        inputs={"in": unknown if input_changes else digest},
        needs={"t": unknown if need_is_damaged else need},
        version=recorded.version,
        outputs={"y": sha256(b"y").hexdigest()},
        env={"A": "1"},
    )


def test_outputs_behind_a_directory_that_is_a_link_count_as_damaged(root: Path) -> None:
    """The links in it are relative, so they may lead to files of others."""
    publish(root, 1, x="one")
    (root / "elsewhere").mkdir()
    (root / "out").rename(root / "elsewhere" / "out")
    (root / "out").symlink_to(root / "elsewhere" / "out")

    assert Outputs(root).damage("t") == "out/t does not lead to the last build"


def test_a_reader_that_resolves_the_link_once_sees_one_version(root: Path) -> None:
    publish(root, 0, x="0", y="0")
    done, torn = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            try:
                version = (root / "out" / "t").resolve()
                seen = {(version / name).read_text() for name in ("x", "y")}
            except FileNotFoundError:
                seen = {"one", "none"}
            if len(seen) > 1:
                torn.append(seen)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(scale(60, 1000)):
        publish(root, turn + 1, x=str(turn), y=str(turn))
    done.set()
    reader.join()

    assert torn == []


@pytest.mark.parametrize(
    "harm", ["edited", "truncated", "removed", "link removed", "link moved", "version removed"]
)
def test_outputs_that_were_changed_by_hand_are_reported(root: Path, harm: str) -> None:
    store = publish(root, 1, x="one")
    file, link = store.version_directory("t") / "x", root / "out" / "t"
    file.chmod(0o644)
    if harm == "edited":
        file.write_text("two")
    elif harm == "truncated":
        file.write_text("")
    elif harm == "removed":
        file.unlink()
    elif harm == "version removed":
        file.unlink()
        file.parent.rmdir()
    else:
        link.unlink()
        if harm == "link moved":
            link.symlink_to("/tmp")

    damage = Outputs(root).damage("t")

    assert damage is not None
    assert ("x" in damage) != harm.startswith("link")


def test_a_missing_output_directory_is_noticed_although_it_had_no_files(
    root: Path, made: Path
) -> None:
    (made / "empty").mkdir()
    version = keep(root, "empty")
    assert Outputs(root).damage("t") is None

    (version / "empty").rmdir()

    assert Outputs(root).damage("t") == "the output empty is missing"


def test_a_target_that_was_never_built_has_no_version_directory(root: Path) -> None:
    publish(root, 1, x="one")

    assert Outputs(root).version_directory("t").exists()
    assert not Outputs(root).version_directory("other").exists()


def test_outputs_are_read_only_so_that_an_editor_does_not_change_the_store_by_accident(
    root: Path,
) -> None:
    publish(root, 1, x="one")

    assert (root / "out" / "t" / "x").stat().st_mode & 0o222 == 0


def test_a_line_of_the_journal_that_was_cut_off_is_ignored(root: Path) -> None:
    publish(root, 1, x="one")
    journal = root / ".tool" / "built.jsonl"
    journal.write_bytes(journal.read_bytes() + b'\n["t", {"version": "t-f')

    try:
        damage = Outputs(root).damage("t")
    except ValueError:
        damage = "the journal cannot be read"

    assert damage is None


def test_the_journal_does_not_grow_for_ever(root: Path) -> None:
    for turn in range(130):
        publish(root, turn, x="one")

    assert len((root / ".tool" / "built.jsonl").read_text().splitlines()) < 110
    assert Outputs(root).damage("t") is None


def test_old_versions_go_after_an_hour_and_the_current_one_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sampletool.sample import publish as module

    old = publish(root, 1, x="one").records["t"].version
    store = publish(root, 2, x="two")
    new = store.records["t"].version
    store.remove_old_versions()
    assert sorted(os.listdir(store.directory)) == sorted([old, new])

    monkeypatch.setattr(module, "_KEPT_SECONDS", -1)
    store.remove_old_versions()

    assert os.listdir(store.directory) == [new]


def test_a_real_file_in_the_place_of_the_link_is_in_the_way(root: Path) -> None:
    (root / "out").mkdir()
    (root / "out" / "t").write_text("mine")

    with pytest.raises(ValueError, match="/out/t is in the way"):
        Outputs(root).check_link_place("t")


def test_a_file_more_is_noticed_and_the_directory_s_time_alone_is_nothing(root: Path) -> None:
    store = publish(root, 1, x="one")
    extra = store.version_directory("t") / "extra"
    made_at = extra.parent.stat().st_mtime_ns

    extra.touch()
    os.utime(extra.parent, ns=(made_at, made_at))  # as if within one tick of the clock
    assert Outputs(root).damage("t") == "a file was added to its outputs, or removed from them"

    extra.unlink()
    assert Outputs(root).damage("t") is None


def test_a_version_that_cannot_be_recorded_is_not_linked(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(root, 1, x="one")
    linked = os.readlink(root / "out" / "t")

    def half(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="full"):
        patched.setattr("sampletool.sample.journal.write_all", half)
        publish(root, 2, x="two")

    assert os.readlink(root / "out" / "t") == linked
    assert Outputs(root).damage("t") is None
    write(root / "made", "x")
    keep(root, "x")
    assert Outputs(root).damage("t") is None


def test_a_linked_version_is_never_removed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linked = publish(root, 1, x="one").records["t"].version
    publish_killed_at(monkeypatch, "replace", root)
    monkeypatch.setattr("sampletool.sample.publish._KEPT_SECONDS", -1)

    Outputs(root).remove_old_versions()

    assert linked in os.listdir(root / ".tool" / "out")


def publish_killed_at(monkeypatch: pytest.MonkeyPatch, call: str, root: Path) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, call, killed)
        publish(root, 2, x="two")


def test_the_journal_is_flushed_once_at_the_end(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)

    publish(root, 1, x="one")

    assert [path.removeprefix(str(root))[:20] for path in flushed] == [
        "/.tool/.built.jsonl.",
        "/.tool",
    ]


def test_a_command_that_is_killed_while_it_links_leaves_nothing_in_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(root, 1, x="one")

    publish_killed_at(monkeypatch, "replace", root)

    assert os.listdir(root / "out") == ["t"]
    publish(root, 3, x="three")
    assert (root / "out" / "t" / "x").read_text() == "three"


def test_a_hard_link_becomes_a_file_of_its_own(root: Path, made: Path) -> None:
    source = made.parent / "source"
    source.write_text("somebody's")
    os.link(source, made / "x")

    kept = keep(root, "x")

    assert (kept / "x").read_text() == "somebody's"
    assert (kept / "x").stat().st_ino != source.stat().st_ino
    assert source.stat().st_mode & 0o200


def test_read_only_outputs_can_be_published(root: Path, made: Path) -> None:
    (made / "x").mkdir()
    (made / "x" / "y").touch()
    (made / "junk").touch()
    (made / "x").chmod(0o555)
    made.chmod(0o555)

    kept = keep(root, "x")

    assert [path.name for path in kept.rglob("*")] == ["x", "y"]
    assert stat.S_IMODE((kept / "x").stat().st_mode) == 0o700


def test_an_output_that_is_too_deep_is_refused(root: Path, made: Path) -> None:
    (made / Path(*"x" * 150)).mkdir(parents=True)

    with pytest.raises(ValueError, match="100 directories deep"):
        keep(root, "x")


def test_deep_and_unreadable_trees_are_removed(made: Path) -> None:
    outside = made.parent / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (made / "link").symlink_to(outside)
    here = os.getcwd()
    os.chdir(made)
    # Deeper than Python calls functions and descriptors can be open, and longer than a path may be.
    for _ in range(1100):
        os.mkdir("deep")
        os.chdir("deep")
    os.chdir(here)
    (made / "deep" / "closed" / "in").mkdir(parents=True)
    (made / "deep" / "closed" / "in" / "file").touch()
    (made / "deep" / "closed").chmod(0)

    force_remove(made)

    assert not made.exists()
    assert (outside / "kept").exists()


def test_only_the_declared_outputs_are_kept(root: Path, made: Path) -> None:
    write(made, "x", "d/y", "e/z", "e/undeclared", "left/over")

    kept = keep(root, "x", "d", "e/z")

    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*")) == [
        "d",
        "d/y",
        "e",
        "e/z",
        "x",
    ]
    assert (kept / "d" / "y").read_text() == "d/y"
    assert Outputs(root).damage("t") is None


@pytest.mark.parametrize("kind", ["missing", "link", "pipe", "link inside"])
def test_an_output_that_is_no_file_is_named(
    tmp_path: Path, root: Path, made: Path, kind: str
) -> None:
    write(made, "left/over")
    write(tmp_path, "elsewhere")
    if kind == "link":
        (made / "x").symlink_to(tmp_path / "elsewhere")
    elif kind == "link inside":
        (made / "x").mkdir()
        (made / "x" / "y").symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(made / "x")

    with pytest.raises((ValueError, OSError)) as refused:
        keep(root, "x")

    assert "'x" in str(refused.value)


def test_read_only_files_are_removed_and_the_targets_of_links_stay(
    tmp_path: Path, made: Path
) -> None:
    write(tmp_path, "elsewhere/file")
    write(made, "d/x")
    (made / "link").symlink_to(tmp_path / "elsewhere")
    (made / "d").chmod(0o500)

    force_remove(made)

    assert not made.exists()
    assert (tmp_path / "elsewhere" / "file").exists()


def test_a_link_instead_of_the_directory_is_removed_and_its_target_stays(
    tmp_path: Path, root: Path, made: Path
) -> None:
    write(tmp_path, "elsewhere/file")
    (tmp_path / "elsewhere").chmod(0o755)
    made.rmdir()
    made.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ValueError, match="its directory"):
        keep(root, "file")
    force_remove(made)

    assert not made.is_symlink()
    assert (tmp_path / "elsewhere" / "file").read_text() == "elsewhere/file"
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o755


def test_out_can_be_exchanged_while_a_version_is_linked(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is still running replaces `out` with a link in the worst moment."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "t").write_text("mine")
    symlink = os.symlink

    def exchange_out(target: str, link: str) -> None:
        symlink(target, link)
        (root / "out").rename(root / "moved")
        symlink(victim, root / "out")

    with monkeypatch.context() as patched:
        patched.setattr(os, "symlink", exchange_out)
        publish(root, 1, x="one")

    assert not (victim / "t").is_symlink()
    assert (victim / "t").read_text() == "mine"
    assert (root / "moved" / "t").is_symlink()
