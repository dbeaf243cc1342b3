"""Every response of the kit's commands has at most 64 KiB, however much there is to report.

The exception is a single value that was requested by its name: `config get` prints all of it.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from sampletool.kit.places import session_root, state_directory, workspace_lock
from sampletool.kit.project import ROOT
from sampletool.kit.safety.clock import utc
from sampletool.kit.safety.private_directory import private_directory
from sampletool.kit.testing.forked import start_python
from sampletool.kit.testing.holding import make_lock
from sampletool.kit.testing.tool import Ran, Tool

_MAX_RESPONSE_BYTES = 64 * 1024

_LONG = "x" * 100_000
"""Nearly the longest argument that Linux accepts."""

_EMOJI = "\U0001f600"
"""A character that takes 12 bytes in JSON."""

_WIDE = _EMOJI * 25_000
"""As many bytes as _LONG, and three times as many in JSON."""

_LOCKS_OF_A_PROCESS = 20
_HOLD_SHARED = """
import sys
from contextlib import ExitStack
from pathlib import Path
from sampletool.kit.testing.holding import make_lock

with ExitStack() as exit_stack:
    for _ in range(int(sys.argv[2])):
        exit_stack.enter_context(make_lock(Path(sys.argv[1])).shared())
    print("held", flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True)
class Site:
    """The place where one case is run."""

    tool: Tool
    workspace: Path
    exit_stack: ExitStack
    """What a case opens is closed after the command."""

    def write_settings(self, *lines: str) -> None:
        """Replace the settings of the workspace."""
        text = "\n".join(["[settings]", *lines])
        (self.workspace / "tool.toml").write_text(f"{text}\n")

    def share(self, path: Path, times: int) -> None:
        """Hold a lock shared, several times.

        To verify a reader, a command looks at the open files of its process. So several processes
        have the locks: with all of them in one process, the command would take seconds.
        """
        for _ in range(times // _LOCKS_OF_A_PROCESS):
            program = ["-c", _HOLD_SHARED, str(path), str(_LOCKS_OF_A_PROCESS)]
            process = start_python(*program, stdin=subprocess.PIPE)
            self.exit_stack.enter_context(process)
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"


@pytest.fixture
def site(tool: Tool, workspace: Path) -> Iterator[Site]:
    """Return a place with an empty workspace."""
    with ExitStack() as exit_stack:
        yield Site(tool, workspace, exit_stack)


# Settings


def config_list_with_long_keys_and_values(site: Site) -> Ran:
    lines = []
    for number in range(100):
        lines.append(f'k{number}{"x" * 1000} = "{"y" * 1000}"')
    site.write_settings(*lines)
    return site.tool("config", "list", "--show-origin")


def config_list_with_one_very_long_key(site: Site) -> Ran:
    site.write_settings(f"{_LONG} = 1", f"z{_LONG} = 1")
    return site.tool("config", "list", "--after", "config.list:session_ttl")


def config_list_with_values_that_are_long_in_json(site: Site) -> Ran:
    site.write_settings(*(f'k{number} = "{_EMOJI * 400}"' for number in range(100)))
    return site.tool("config", "list")


def config_list_with_invalid_values(site: Site) -> Ran:
    lines = []
    for name in ("jobs", "lock_timeout", "session_ttl", "format", "call_log"):
        lines.append(f'{name} = "{_EMOJI * 5000}"')
    for number in range(100):
        lines.append(f'k{number}{"x" * 400} = "{"y" * 400}"')
    site.write_settings(*lines)
    return site.tool("config", "list")


def config_list_with_long_fields(site: Site) -> Ran:
    return site.tool("config", "list", "--fields", ",".join(["settings"] * 10_000))


def config_list_with_a_long_trace_id(site: Site) -> Ran:
    return site.tool("config", "list", TOOL_TRACE_ID=_LONG)


def config_explain_of_a_long_value(site: Site) -> Ran:
    site.write_settings(f'a = "{_LONG}"')
    return site.tool("config", "explain", "a")


def config_explain_of_a_long_key(site: Site) -> Ran:
    site.write_settings(f"{_LONG} = 1")
    return site.tool("config", "explain", _LONG)


def config_get_of_a_missing_key(site: Site) -> Ran:
    return site.tool("config", "get", f'"{_WIDE}"')


def config_set_of_100_long_keys(site: Site) -> Ran:
    return site.tool("config", "set", *(f"k{number}{'x' * 1000}=1" for number in range(100)))


def config_set_of_keys_that_may_be_misspelled(site: Site) -> Ran:
    keys = [f"session_ttl{number}=1" for number in range(500)]
    # The command fails before it changes 500 keys, because that takes 40 s.
    return site.tool("config", "set", "--if-version", "other", *keys)


def config_set_with_100_mistakes(site: Site) -> Ran:
    return site.tool("config", "set", *(f"%20{number}{'x' * 1000}=1" for number in range(100)))


def config_set_with_mistakes_that_are_long_in_json(site: Site) -> Ran:
    return site.tool("config", "set", *(f"%20{number}{_EMOJI * 300}=1" for number in range(100)))


def config_set_in_a_table_of_long_keys(site: Site) -> Ran:
    site.write_settings("[settings.table]", *(f"k{n}{'x' * 1000} = 1" for n in range(100)))
    return site.tool("config", "set", "table", "1")


def config_unset_of_100_long_keys(site: Site) -> Ran:
    return site.tool("config", "unset", *(f"k{number}{'x' * 1000}" for number in range(100)))


def config_unset_of_thousands_of_keys(site: Site) -> Ran:
    return site.tool("config", "unset", *(f"k{number}" for number in range(5000)))


def config_path_with_a_long_argument(site: Site) -> Ran:
    return site.tool("config", "path", _WIDE)


def config_edit_with_a_long_name_of_an_editor(site: Site) -> Ran:
    return site.tool("config", "edit", VISUAL=_LONG)


# Locks


def lock_list_of_300_locks(site: Site) -> Ran:
    for number in range(300):
        path = workspace_lock(site.workspace, f"lock-{number}-{'x' * 150}")
        site.exit_stack.enter_context(make_lock(path).exclusively())
    return site.tool("lock", "list", "--limit", "10000")


def lock_list_of_300_readers(site: Site) -> Ran:
    site.share(workspace_lock(site.workspace, "build"), times=300)
    return site.tool("lock", "list")


def status_with_300_readers(site: Site) -> Ran:
    site.share(workspace_lock(site.workspace, "build"), times=300)
    return site.tool("status")


def lock_release_of_a_lock_with_500_readers(site: Site) -> Ran:
    site.share(workspace_lock(site.workspace, "build"), times=500)
    return site.tool("lock", "release", "build")


# Sessions


def _create_sessions(count: int) -> None:
    """Create sessions with long IDs, which were last used in 1970."""
    root = private_directory(session_root())
    for number in range(count):
        session_id = f"s{number}-".ljust(64, "x")
        directory = private_directory(root / session_id)
        (directory / ".lock").touch(mode=0o600)
        os.utime(directory, (number, number))


def session_list_of_200_sessions(site: Site) -> Ran:
    _create_sessions(200)
    return site.tool("session", "list", "--limit", "10000")


def session_list_of_a_session_with_300_readers(site: Site) -> Ran:
    _create_sessions(1)
    (session,) = session_root().iterdir()
    site.share(session / ".lock", times=300)
    return site.tool("session", "list")


def session_clean_of_200_sessions(site: Site) -> Ran:
    _create_sessions(200)
    return site.tool("session", "clean")


# The log, the doctor and the manifest


def log_of_thousands_of_long_lines(site: Site) -> Ran:
    line = {
        "at": utc(),
        "command": "config.get",
        "exit_code": 0,
        "duration_ms": 1,
        "cwd": "/" + "d" * 500,
        "about": ["k" * 100] * 5,
    }
    lines = [json.dumps({**line, "request_id": f"r{number}"}) for number in range(3000)]
    private_directory(state_directory())
    (state_directory() / "calls.jsonl").write_text("\n".join(lines))
    return site.tool("log", "--limit", "10000")


def doctor_with_long_paths(site: Site) -> Ran:
    directory = site.workspace
    while len(str(directory)) < 3600:
        directory /= "d" * 200
    directory.mkdir(parents=True)
    (directory / "tool.toml").touch()
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        own_directory = private_directory(directory / name)
        site.tool.environ[name] = str(own_directory)
    return site.tool("doctor", "--cwd", directory)


def doctor_with_300_unusable_locks(site: Site) -> Ran:
    for number in range(300):
        path = workspace_lock(site.workspace, f"lock-{number}-{'x' * 150}")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.symlink_to("/dev/null")
    return site.tool("doctor")


def doctor_with_500_linked_locks(site: Site) -> Ran:
    for number in range(500):
        path = workspace_lock(site.workspace, f"lock-{number}-{'x' * 150}")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch()
        path.with_name(f"copy-{number}").hardlink_to(path)
    return site.tool("doctor")


def doctor_report_with_many_variables(site: Site) -> Ran:
    for number in range(100):
        site.tool.environ[f"TOOL_V{number}"] = _EMOJI * 250
    return site.tool("doctor", "--report", "--json")


def manifest_of_everything(site: Site) -> Ran:
    return site.tool("manifest", "--all", "--schema", "--limit", "10000")


def manifest_of_an_unknown_command(site: Site) -> Ran:
    return site.tool("manifest", _WIDE)


_Case = Callable[[Site], Ran]
"""A function that prepares a place with a lot to report, and runs one command there."""

_CASES: dict[str, list[_Case]] = {
    "config edit": [config_edit_with_a_long_name_of_an_editor],
    "config explain": [config_explain_of_a_long_value, config_explain_of_a_long_key],
    "config get": [config_get_of_a_missing_key],
    "config list": [
        config_list_with_long_keys_and_values,
        config_list_with_one_very_long_key,
        config_list_with_values_that_are_long_in_json,
        config_list_with_invalid_values,
        config_list_with_long_fields,
        config_list_with_a_long_trace_id,
    ],
    "config path": [config_path_with_a_long_argument],
    "config set": [
        config_set_of_100_long_keys,
        config_set_of_keys_that_may_be_misspelled,
        config_set_with_100_mistakes,
        config_set_with_mistakes_that_are_long_in_json,
        config_set_in_a_table_of_long_keys,
    ],
    "config unset": [config_unset_of_100_long_keys, config_unset_of_thousands_of_keys],
    "doctor": [
        doctor_with_long_paths,
        doctor_with_300_unusable_locks,
        doctor_with_500_linked_locks,
        doctor_report_with_many_variables,
    ],
    "lock list": [lock_list_of_300_locks, lock_list_of_300_readers],
    "lock release": [lock_release_of_a_lock_with_500_readers],
    "log": [log_of_thousands_of_long_lines],
    "manifest": [manifest_of_everything, manifest_of_an_unknown_command],
    "session clean": [session_clean_of_200_sessions],
    "status": [status_with_300_readers],
    "session list": [session_list_of_200_sessions, session_list_of_a_session_with_300_readers],
}


_ALL_CASES = [case for cases in _CASES.values() for case in cases]


def test_each_command_of_the_kit_has_a_case() -> None:
    folder = ROOT / "sampletool" / "kit" / "commands"
    names = set()
    for file in folder.rglob("*.py"):
        if not file.name.startswith("_"):
            path = file.relative_to(folder).with_suffix("")
            names.add(" ".join(path.parts))

    assert names == _CASES.keys()


@pytest.mark.parametrize("run_case", _ALL_CASES, ids=lambda case: case.__name__)
def test_no_response_is_larger_than_64_kib(site: Site, run_case: _Case) -> None:
    ran = run_case(site)

    assert len(ran.stdout) <= _MAX_RESPONSE_BYTES


def test_a_result_with_too_many_keys_says_how_many_it_does_not_list(site: Site) -> None:
    data = config_unset_of_thousands_of_keys(site).data

    assert data["unlisted"] > 0
    assert len(data["changes"]) + data["unlisted"] == 5000


def test_warnings_that_are_left_out_are_announced(site: Site) -> None:
    warnings = config_set_of_keys_that_may_be_misspelled(site).response["warnings"]

    assert warnings[-2]["code"] == "UNKNOWN_KEY"
    assert warnings[-1]["code"] == "MORE_WARNINGS"


def test_two_long_keys_with_the_same_beginning_are_shown_differently(site: Site) -> None:
    site.write_settings(f"z{_LONG}a = 1", f"z{_LONG}b = 1")

    listed = site.tool("config", "list", "--after", "config.list:session_ttl").data["settings"]

    long_keys = {setting["key"] for setting in listed if "…" in setting["key"]}
    assert len(long_keys) == 2
