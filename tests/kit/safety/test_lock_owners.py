"""Who really holds a lock, also where the kernel does not tell."""

import json
import os
from itertools import count
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import TimedOut
from sampletool.kit.safety import processes
from sampletool.kit.safety.lock_owners import find_held, find_owners
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool


def test_nobody_is_named_where_nobody_holds(tmp_path: Path) -> None:
    assert find_owners(tmp_path / "never locked").holders == []


def test_having_the_file_open_is_no_proof_of_holding_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding(path) as other:
        looking = os.open(path, os.O_RDWR)
        found = find_owners(path)
        os.close(looking)

    assert [holder.pid for holder in found.holders] == [other.pid]


def test_what_is_held_is_found_among_many_old_lock_files_by_looking_at_them_all_at_once(
    tmp_path: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: each file that nobody holds costs a look at every process, so a list gets slow with every output made."""
    paths = [tmp_path / f"output-{n}.lock" for n in range(50)]
    for path in paths:
        path.touch(mode=0o600)
    look, looks = processes.pids, count()
    monkeypatch.setattr(processes, "pids", lambda: [look(), next(looks)][0])

    assert list(find_held([*paths, tmp_path / "gone.lock"], signals.check)) == []
    idle = next(looks)
    with holding(paths[7]) as one, holding(paths[9], "shared") as two:
        found = {path: owners.holders[0].pid for path, owners in find_held(paths, signals.check)}

    assert idle == 1
    assert found == {paths[7]: one.pid, paths[9]: two.pid}


def test_looking_through_locks_ends_when_the_call_has_to(tmp_path: Path, signals: Signals) -> None:
    signals.limit(0)

    with pytest.raises(TimedOut):
        list(find_held([tmp_path / "lock"], signals.check))


def test_without_proc_the_answer_is_the_record_marked_as_not_verified(tool: Tool, workspace: Path) -> None:
    locks = workspace / ".tool" / "locks"
    locks.mkdir(parents=True, mode=0o700)
    (workspace / ".tool").chmod(0o700)

    call = ("config", "set", "a", "1", "--lock-timeout", "0")
    with holding(locks / "tool.toml.lock") as other, tool.stepped(*call, watch=workspace, hide=["/proc"]) as blind:
        ended = blind.finish()

    assert ended.stdout, ended.stderr
    error = json.loads(ended.stdout)["error"]
    assert error["code"] == "LOCK_HELD"
    holder = error["context"]["holder"]
    assert (holder["pid"], holder["state"], holder["verified"]) == (other.pid, "unknown", False)
    assert "not verified" in error["message"]
