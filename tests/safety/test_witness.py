"""Who really holds a lock, also where the kernel does not tell."""

import json
import os
from pathlib import Path

from sampletool.safety.witness import find_holders
from tests.support.holding import holding
from tests.support.tool import Tool


def test_nobody_is_named_where_nobody_holds(tmp_path: Path) -> None:
    assert find_holders(tmp_path / "never locked").holders == []


def test_having_the_file_open_is_no_proof_of_holding_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding(path) as other:
        looking = os.open(path, os.O_RDWR)
        found = find_holders(path)
        os.close(looking)

    assert [holder.pid for holder in found.holders] == [other.pid]


def test_without_proc_the_answer_is_the_record_marked_as_not_verified(tool: Tool, workspace: Path) -> None:
    locks = workspace / ".tool" / "locks"
    locks.mkdir(parents=True, mode=0o700)
    (workspace / ".tool").chmod(0o700)

    call = ("config", "set", "a", "1", "--lock-timeout", "0")
    with holding(locks / "tool.toml.lock") as other, tool.on_stage(*call, watch=workspace, hide=["/proc"]) as blind:
        ended = blind.finish()

    assert ended.stdout, ended.stderr
    error = json.loads(ended.stdout)["error"]
    assert error["code"] == "LOCK_HELD"
    holder = error["context"]["holder"]
    assert (holder["pid"], holder["state"], holder["verified"]) == (other.pid, "unknown", False)
    assert "not verified" in error["message"]
