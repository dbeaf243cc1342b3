"""Write the text that a person pastes into a bug report.

It has no values of settings, no passwords, and `~` in place of the home directory.
"""

import os
import platform
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from ..contract.expected import EXPECTED, to_tool_error
from ..contract.response import count_fitting
from ..contract.text import printable, redact
from ..places import session_root
from ..program import env_variable, tracker_address
from ..safety.session import list_sessions
from ._probes import Probe
from ._used_paths import UsedPath

_VARIABLES_WITH_VALUE = (
    "CI",
    "CLICOLOR*",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_*",
    "NO_COLOR",
    "TERM",
    "TMPDIR",
    "XDG_*_HOME",
    env_variable("CONFIG_DIR"),
    env_variable("STATE_DIR"),
    env_variable("FORMAT"),
    env_variable("JOBS"),
    env_variable("LOCK_TIMEOUT"),
    env_variable("TIMEOUT"),
)
"""The variables, also patterns of them, whose values are shown. None of these values is secret.

Of the other variables of the tool, the report only says that they are set. Any setting has such a
variable, and its name does not always tell whether the value is secret.
"""

_MAX_VALUE_CHARACTERS = 200
_MAX_ENVIRONMENT_BYTES = 24 * 1024
_MAX_CRASH_REPORTS = 5


def write_report(
    versions: dict[str, str],
    paths: Iterable[UsedPath],
    probes: Iterable[Probe],
) -> str:
    """Return the report. No probe may quote the value of a setting.

    The line of a probe leaves out an empty place.
    """
    lines = ["Versions"]
    for name, version in versions.items():
        lines.append(f"  {name} {version}")
    lines.append(f"  {platform.python_implementation()} on {platform.machine()}, {sys.executable}")

    lines += ["", "Paths"]
    for used in paths:
        suffix = "" if used.exists else " (does not exist)"
        lines.append(f"  {used.name}: {used.path}{suffix}")

    lines += ["", "Checks"]
    for probe in probes:
        lines.append(_probe_line(probe))

    lines += ["", "Environment"]
    lines += _environment_lines()

    lines += ["", "Last crash reports"]
    lines += _crash_report_lines()

    address = tracker_address()
    if address:
        lines += ["", f"To report a bug, paste this text at {address}"]
    return "\n".join(_without_home(printable(line)) for line in lines)


def _probe_line(probe: Probe) -> str:
    outcome = "ok  " if probe.ok else "FAIL"
    line = f"  {outcome} {probe.name}"
    if probe.where:
        line += f": {probe.where}"
    if probe.detail is not None and not probe.ok:
        line += f": {probe.detail}"
    return redact(line)


def _environment_lines() -> list[str]:
    lines = []
    for name, value in sorted(os.environ.items()):
        if _may_show_value(name):
            lines.append(f"  {name}={redact(value)[:_MAX_VALUE_CHARACTERS]}")
        elif name.startswith(env_variable("")):
            lines.append(f"  {name} is set")
    count = count_fitting(lines, _MAX_ENVIRONMENT_BYTES)
    if count < len(lines):
        lines[count:] = [f"  and {len(lines) - count} more"]
    return lines


def _may_show_value(name: str) -> bool:
    """Return whether the value of an environment variable cannot be secret."""
    return any(fnmatchcase(name, pattern) for pattern in _VARIABLES_WITH_VALUE)


def _crash_report_lines() -> list[str]:
    """Return the paths of the last crash reports, newest first."""
    try:
        reports: list[Path] = []
        for session in list_sessions(session_root()):
            reports += Path(session.path).glob("crash-*.txt")
        reports.sort(key=lambda report: report.stat().st_mtime, reverse=True)
    except EXPECTED as error:
        return [f"  cannot be read: {to_tool_error(error).message}"]
    if not reports:
        return ["  none"]
    return [f"  {report}" for report in reports[:_MAX_CRASH_REPORTS]]


def _without_home(line: str) -> str:
    """Return the line with `~` in place of the home directory, which often has a person's name."""
    home = os.path.expanduser("~")
    if home in ("", "/", "~"):
        return line
    return line.replace(f"{home}/", "~/")
