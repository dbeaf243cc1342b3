"""Two people, or two agents, run `config set` at the same moment.

Each of them sets a key of its own. Both commands report success, but only one key is in the file.
The process that wrote last wrote back the text that it had read before the other process wrote.
Neither process sees an error.
"""

import fcntl
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...kit.safety.toml_file import editing_toml
from ..scenario import History, Mutation, Scenario, Step, Variant
from ._mechanisms import without_lock

FILE = Path("tool.toml")


def naive(worker: str) -> None:
    text = FILE.read_text()
    FILE.write_text(f"{text}{worker} = 1\n")


def wrong_rename(worker: str) -> None:
    """Replace the file by a rename. Wrong: another process may write after the read."""
    text = FILE.read_text()
    temporary = Path(f".tool.toml.{worker}")
    temporary.write_text(f"{text}{worker} = 1\n")
    os.replace(temporary, FILE)


def wrong_two_locks(worker: str) -> None:
    """Lock the read and the write separately. Wrong: another process may write in between."""
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = FILE.read_text()
        fcntl.flock(lock, fcntl.LOCK_UN)

        fcntl.flock(lock, fcntl.LOCK_EX)
        FILE.write_text(f"{text}{worker} = 1\n")
        fcntl.flock(lock, fcntl.LOCK_UN)


def fixed_link(worker: str) -> None:
    """Run `tool config set` as A. As B, replace the link with one to a new file under the lock."""
    replaces_link = worker == "B"
    if replaces_link:
        with editing_toml(FILE) as file:
            Path("second.toml").write_text(f"{file.text}B = 1\n")
            os.symlink("second.toml", "new")
            os.replace("new", FILE)
    else:
        sys.argv[1:] = ["config", "set", worker, "1"]
        runpy.run_module("sampletool", run_name="__main__", alter_sys=True)


def fixed_two_names(worker: str) -> None:
    """Add a key to one file under two names: A uses the link, and B the file that it leads to."""
    uses_link = worker == "A"
    path = FILE if uses_link else Path("first.toml")
    with editing_toml(path) as file:
        file.text += f"{worker} = 1\n"
        file.write()


def prepare(directory: Path) -> None:
    """Create a config file with one key."""
    (directory / FILE).write_text("[settings]\njobs = 4\n")


def prepare_a_link(directory: Path) -> None:
    """Create a config file with one key, and a link to it where the tool expects the file."""
    (directory / "first.toml").write_text("[settings]\njobs = 4\n")
    (directory / FILE).symlink_to("first.toml")


@dataclass(frozen=True)
class SavedKeys:
    """The keys in the config file."""

    keys: Sequence[str]

    def __str__(self) -> str:
        if not self.keys:
            return "(empty)"
        return " ".join(self.keys)


def read_state(directory: Path) -> SavedKeys:
    """Return the keys in the config file, in their order."""
    keys = []
    for line in (directory / FILE).read_text().splitlines():
        key, equals_sign, _value = line.partition("=")
        if equals_sign:
            keys.append(key.strip())
    return SavedKeys(keys)


def invariant(history: History) -> Iterator[str]:
    """When a process has reported success, its key is in tool.toml. No other key is lost."""
    saved_keys = history.state.keys
    # The key that a worker saves has the name of the worker.
    for worker in history.successful_workers:
        if worker not in saved_keys:
            yield f"{worker} reported success, but its key is not in {FILE}."
    if not history.is_finished:
        return
    if "jobs" not in saved_keys:
        yield f"the key jobs is no longer in {FILE}."
    for worker in history.workers:
        if worker not in history.successful_workers:
            yield f"{worker} failed to save its key."


LOCKED = (
    Step(name="lock", event="fcntl.flock", file="*.toml.lock", kind="lock", takes_lock=True),
    Step(name="read", event="open", file="*.toml", kind="read", after_steps=("lock",)),
    Step(name="rename", event="os.rename", file="*.toml"),
)


scenario = Scenario(
    title="Lost update in a config file",
    subtitle="Two commands save a setting, and one setting disappears.",
    rule=(
        "An atomic write is not an atomic update. Hold one lock from before the read until after "
        "the write."
    ),
    happened=(
        "Concurrent runs of the SpacetimeDB command-line tool read its config file and wrote it "
        "back at the same time. Settings were lost.",
        "https://github.com/clockworklabs/SpacetimeDB/pull/1196",
    ),
    question=(
        "A adds the key A, and B adds the key B. Both succeed. Which keys can be in the file "
        "afterwards?"
    ),
    shared="tool.toml",
    private_variables=("text",),
    variants={
        "naive": Variant(
            summary="reads the file, adds the key, writes the file",
            explanation="B wrote back the text that it had read before A wrote.",
        ),
        "wrong-rename": Variant(
            summary="writes a temporary file and renames it",
            explanation=(
                "The rename makes the write atomic, but the text that B wrote was out of date."
            ),
        ),
        "wrong-two-locks": Variant(
            summary="locks the read and the write separately",
            steps=(
                Step(
                    name="lock, read",
                    event="fcntl.flock",
                    file="lock",
                    kind="lock",
                    after_steps=("start",),
                    takes_lock=True,
                ),
                Step(
                    name="unlock",
                    event="fcntl.flock",
                    file="lock",
                    kind="unlock",
                    after_steps=("lock, read",),
                    releases_lock=True,
                ),
                Step(
                    name="lock, write",
                    event="fcntl.flock",
                    file="lock",
                    kind="lock",
                    after_steps=("unlock",),
                    takes_lock=True,
                ),
            ),
            schedule="A1 A2 B1 B2 A3 B3",
            explanation="B read under one lock and wrote under another one. In between, A wrote.",
        ),
        "fixed": Variant(
            summary="runs `tool config set`, which holds one lock from the read to the write",
            program=("config", "set", "{worker}", "1"),
            steps=LOCKED,
            schedule="A1 B1 A2 A3",
            explanation="B waited, and read the file only after A's key was in it.",
        ),
        "fixed-link": Variant(
            summary="does the same, while B changes the symbolic link",
            steps=LOCKED,
            schedule="B1 A1 B2 B3",
            explanation=(
                "A got the lock of the old file, resolved the link again, and took the lock of the "
                "new file."
            ),
            prepare=prepare_a_link,
        ),
        "fixed-two-names": Variant(
            summary=(
                "the same, where B does not use the link, but the name of the file that it leads to"
            ),
            steps=LOCKED,
            schedule="A1 B1 A2 A3",
            explanation=(
                "both names lead to one file, and its lock is named after the file, not after the "
                "link."
            ),
            prepare=prepare_a_link,
        ),
    },
    steps=(
        Step(name="read", event="open", file="tool.toml", kind="read"),
        Step(name="write", event="open", file="tool.toml", kind="write"),
        Step(name="rename", event="os.rename", file="tool.toml"),
    ),
    mechanisms=(
        Mutation(
            function="kit/safety/toml_file.py:editing_toml",
            summary="read before taking the lock",
            original_code="""\
lock = make_lock(lock_path_of(resolved), resolved.name)
with lock.exclusively(timeout_seconds) as hold:
    ...
    yield TomlEdit(read_toml(resolved), hold)
    return
""",
            replacement_code="""\
before = read_toml(resolved)
lock = make_lock(lock_path_of(resolved), resolved.name)
with lock.exclusively(timeout_seconds) as hold:
    ...
    yield TomlEdit(before, hold)
    return
""",
            expected_problem="reported success, but its key is not in",
        ),
        Mutation(
            function="kit/safety/toml_file.py:editing_toml",
            summary="do not resolve the link again under the lock",
            original_code="if resolve(path) != resolved:\n    continue",
            replacement_code="pass",
            expected_problem="reported success, but its key is not in",
        ),
        without_lock("reported success, but its key is not in"),
    ),
    production_code="sampletool.kit.safety.toml_file:editing_toml",
)
