"""Two people, or two agents, run `config set` at the same moment, each for a key of its own.

Both are answered that it worked. Only one of the keys is in the file: the one that wrote last wrote back what it had
read before the other one wrote. Nothing failed, nothing was logged, and it works whenever one looks closely.
"""

import fcntl
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

from ...kit.safety.toml_file import editing_toml
from ..scenario import History, Removal, Scenario, Step, Way
from ._mechanisms import without_lock

FILE = Path("tool.toml")


def naive(worker: str) -> None:
    text = FILE.read_text()
    FILE.write_text(f"{text}{worker} = 1\n")


def wrong_rename(worker: str) -> None:
    text = FILE.read_text()
    beside = Path(f".tool.toml.{worker}")
    beside.write_text(f"{text}{worker} = 1\n")
    os.replace(beside, FILE)


def wrong_two_locks(worker: str) -> None:
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = FILE.read_text()
        fcntl.flock(lock, fcntl.LOCK_UN)

        fcntl.flock(lock, fcntl.LOCK_EX)
        FILE.write_text(f"{text}{worker} = 1\n")
        fcntl.flock(lock, fcntl.LOCK_UN)


def fixed_link(worker: str) -> None:
    """B moves the file to another place, where the link then leads, under the lock of the place where it was."""
    if worker == "B":
        with editing_toml(FILE) as file:
            Path("second.toml").write_text(f"{file.text}B = 1\n")
            os.symlink("second.toml", "new")
            os.replace("new", FILE)
    else:
        sys.argv[1:] = ["config", "set", worker, "1"]
        runpy.run_module("sampletool", run_name="__main__", alter_sys=True)


def fixed_two_names(worker: str) -> None:
    """B uses the file's own name, and A the link."""
    name = Path("first.toml") if worker == "B" else FILE
    with editing_toml(name) as file:
        file.text += f"{worker} = 1\n"
        file.write()


def prepare(directory: Path) -> None:
    (directory / FILE).write_text("[settings]\njobs = 4\n")


def prepare_a_link(directory: Path) -> None:
    (directory / "first.toml").write_text("[settings]\njobs = 4\n")
    (directory / FILE).symlink_to("first.toml")


def look(directory: Path) -> str:
    lines = (directory / FILE).read_text().splitlines()
    return " ".join(line.split("=")[0].strip() for line in lines if "=" in line) or "(empty)"


def invariant(history: History) -> Iterator[str]:
    """From the moment when a caller is answered that its key is saved, the key is in tool.toml, as is all else."""
    keys_now = history.now.split()
    for letter in history.served:
        if letter not in keys_now:
            yield f"{letter} was answered that its key is saved, and {FILE} does not have it."
    if "jobs" not in keys_now and history.is_over:
        yield f"a key that nobody has touched is not in {FILE} any more."
    for letter in history.letters:
        if history.is_over and letter not in history.served:
            yield f"{letter} could not save its key."


LOCKED = (
    Step("lock", "fcntl.flock", "*.toml.lock", kind="lock", holds=True),
    Step("read", "open", "*.toml", kind="read", after=("lock",)),
    Step("rename", "os.rename", "*.toml"),
)

scenario = Scenario(
    title="Two `config set` at once, and one of them never happened",
    rule="An atomic write is not an atomic update: hold one lock from before the read until after the write.",
    happened=(
        "The SpacetimeDB tool read all of its settings, changed one and wrote all of them back: two runs lost changes.",
        "https://github.com/clockworklabs/SpacetimeDB/pull/1196",
    ),
    question="A adds the key A, B adds the key B. Both succeed. Which keys can be in the file afterwards?",
    shared="tool.toml",
    private=("text",),
    ways={
        "naive": Way(
            says="read the file, add the key, write it back",
            because="B wrote back what it had read before A wrote.",
        ),
        "wrong-rename": Way(
            says="the same, but written beside and renamed over",
            because="the rename makes the write atomic, so nobody reads half a file; what B wrote was still too old.",
        ),
        "wrong-two-locks": Way(
            says="a lock around the read, and again around the write",
            steps=(
                Step("lock, read", "fcntl.flock", "lock", kind="lock", after=("start",), holds=True),
                Step("unlock", "fcntl.flock", "lock", kind="unlock", after=("lock, read",), frees=True),
                Step("lock, write", "fcntl.flock", "lock", kind="lock", after=("unlock",), holds=True),
            ),
            shows="A1 A2 B1 B2 A3 B3",
            because="between its two locks A's copy of the file grew old.",
        ),
        "fixed": Way(
            says="tool config set: one lock from before the read until after the write",
            program=("config", "set", "{worker}", "1"),
            steps=LOCKED,
            shows="A1 B1 A2 A3",
            because="B had to wait, and read the file only when A's key was in it.",
        ),
        "fixed-link": Way(
            says="the same, where tool.toml is a link that B points to another file: followed again under the lock",
            steps=LOCKED,
            shows="B1 A1 B2 B3",
            because="A waited for the lock of a file that was no longer tool.toml, saw that, and took the right one.",
            prepare=prepare_a_link,
        ),
        "fixed-two-names": Way(
            says="the same, where B does not use the link, but the name of the file that it leads to",
            steps=LOCKED,
            shows="A1 B1 A2 A3",
            because="both names lead to one file, and its lock is named after the file, not after the link.",
            prepare=prepare_a_link,
        ),
    },
    steps=(
        Step("read", "open", "tool.toml", kind="read"),
        Step("write", "open", "tool.toml", kind="write"),
        Step("rename", "os.rename", "tool.toml"),
    ),
    mechanisms=(
        Removal(
            "kit/safety/toml_file.py:editing_toml",
            says="reading before the lock instead of under it",
            pattern="""\
lock = make_lock(lock_path_of(resolved), resolved.name)
with lock.exclusively(timeout_seconds) as hold:
    ...
    yield TomlEdit(read_toml(resolved), hold)
    return
""",
            instead="""\
before = read_toml(resolved)
lock = make_lock(lock_path_of(resolved), resolved.name)
with lock.exclusively(timeout_seconds) as hold:
    ...
    yield TomlEdit(before, hold)
    return
""",
            breaks="was answered that its key is saved",
        ),
        Removal(
            "kit/safety/toml_file.py:editing_toml",
            says="not looking at the link again under the lock",
            pattern="if resolve(path) != resolved:\n    continue",
            instead="pass",
            breaks="was answered that its key is saved",
        ),
        without_lock("was answered that its key is saved"),
    ),
    symbol="sampletool.kit.safety.toml_file:editing_toml",
    still_broken_by="an editor that saves the file takes no lock; a network file system may not carry flock.",
)
