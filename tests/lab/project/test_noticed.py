"""Mistakes that `lab check` once missed: each is put into a copy of the production code."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from sampletool.kit.testing.scale import SOAK
from sampletool.kit.testing.tool import Tool
from sampletool.lab.scenario import PACKAGE


@dataclass(frozen=True)
class Mistake:
    """A change of production code that breaks a mechanism."""

    scenario: str
    changes: tuple[tuple[str, str, str], ...]
    """A file, a part of it, and what is there instead."""
    reason: str
    """A part of what `lab check` has to say."""


MISTAKES = {
    "a temporary name that can be guessed, without O_EXCL": Mistake(
        scenario="planted-link",
        changes=(
            (
                "kit/safety/atomic_file.py",
                'f".{_stem(target)}.{os.getpid()}-{random_part}.tmp"',
                'f".{_stem(target)}.tmp"',
            ),
            ("kit/safety/atomic_file.py", "os.O_CREAT | os.O_EXCL", "os.O_CREAT"),
        ),
        reason="A overwrote the file mine",
    ),
    "a log that is truncated before each line": Mistake(
        scenario="interleaved-log",
        changes=(
            (
                "kit/call_log.py",
                "        os.write(descriptor, line)\n",
                "        os.ftruncate(descriptor, 0)\n        os.write(descriptor, line)\n",
            ),
        ),
        reason="is not in the log",
    ),
    "a retry with another result than the first try": Mistake(
        scenario="retry-twice",
        changes=(
            (
                "state/sql.py",
                "Reply(decode(self.result), is_replayed=True)",
                'Reply([2, "updated"], is_replayed=True)',
            ),
        ),
        reason="got another result than the first attempt",
    ),
    "a lock file that is removed, without a second look": Mistake(
        scenario="stale-lock",
        changes=(
            (
                "kit/safety/lock.py",
                "            unlock(descriptor)\n            # A waiter",
                "            self._path.unlink(missing_ok=True)\n"
                "            unlock(descriptor)\n            # A waiter",
            ),
            (
                "kit/safety/lock.py",
                "is_current = _is_current(path, descriptor)",
                "is_current = True",
            ),
        ),
        reason="held the lock at the same moment",
    ),
    "entering without the lock when patience is lost": Mistake(
        scenario="leaked-lock",
        changes=(
            (
                "kit/safety/lock.py",
                "            if not waiter.has_lock():\n                raise _TooLate",
                "            waiter.has_lock()",
            ),
        ),
        reason="worked without the lock",
    ),
    "a lock of the name that was given, not of the file that it leads to": Mistake(
        scenario="lost-config-update",
        changes=(
            (
                "kit/safety/toml_file.py",
                "make_lock(lock_path_of(resolved)",
                "make_lock(lock_path_of(path)",
            ),
        ),
        reason="reported success, but its key is not in",
    ),
}


@pytest.mark.parametrize("name", list(MISTAKES)[: len(MISTAKES) if SOAK else 2])
def test_the_mistake_is_noticed_by_the_scenario(name: str, tool: Tool, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy / "sampletool", ignore=shutil.ignore_patterns("*.pyc.*"))
    for file, part, instead in mistake.changes:
        path = copy / "sampletool" / file
        source = path.read_text()
        assert source.count(part) == 1, f"{file} has changed"
        path.write_text(source.replace(part, instead))

    found = tool("lab", "check", mistake.scenario, PYTHONPATH=str(copy))

    assert found.code == "UNEXPECTED_OUTCOME"
    assert mistake.reason in found.error["message"]
