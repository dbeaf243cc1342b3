"""Write the text that a person pastes into a bug report.

It has no values of settings, no passwords, and `~` in place of the home directory.
"""

import os
import platform
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from ..contract.expected import EXPECTED, to_tool_error
from ..contract.response import count_fitting
from ..contract.text import MASK, is_secret, printable, redact
from ..places import session_root
from ..program import PACKAGE, env_variable
from ..safety.session import list_sessions
from ._probes import Probe
from ._used_paths import UsedPath

_REPORTED_PREFIXES = (env_variable(""), "XDG_")
_REPORTED_VARIABLES = ("CI", "LANG", "TERM")
_MAX_VALUE_CHARACTERS = 200
_MAX_ENVIRONMENT_BYTES = 24 * 1024
_MAX_CRASH_REPORTS = 5


def write_report(
    versions: dict[str, str],
    paths: Iterable[UsedPath],
    probes: Iterable[Probe],
) -> str:
    """Return the report."""
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


def tracker_address() -> str:
    """Return the address of the issue tracker, or "" if the program has no repository."""
    repository: str = getattr(import_module(PACKAGE), "REPOSITORY", "")
    if not repository:
        return ""
    return f"{repository}/issues"


def _probe_line(probe: Probe) -> str:
    outcome = "ok  " if probe.ok else "FAIL"
    line = f"  {outcome} {probe.name}: {probe.where}"
    if probe.detail is not None and not probe.ok:
        line += f": {probe.detail}"
    return redact(line)


def _environment_lines() -> list[str]:
    lines = []
    for name, value in sorted(os.environ.items()):
        is_reported = name in _REPORTED_VARIABLES or name.startswith(_REPORTED_PREFIXES)
        if not is_reported:
            continue
        shown = MASK if is_secret(name) else redact(value)
        lines.append(f"  {name}={shown[:_MAX_VALUE_CHARACTERS]}")
    count = count_fitting(lines, _MAX_ENVIRONMENT_BYTES)
    if count < len(lines):
        lines[count:] = [f"  and {len(lines) - count} more"]
    return lines


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
