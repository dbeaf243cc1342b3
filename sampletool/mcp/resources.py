"""The MCP resources, which a client can read.

These are the manifest of the commands, the race conditions of the lab, and the files that commands
have written into the directories of sessions.
"""

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ..kit.contract.expected import EXPECTED
from ..kit.contract.text import printable
from ..kit.places import session_root
from ..kit.program import PROGRAM
from ..kit.safety.session import list_sessions
from ..kit.session_id import check_session_id

RunCommand = Callable[[list[str]], Coroutine[Any, Any, bytes]]
"""Runs a command, given its command line, and returns its response."""

_SCHEME = f"{PROGRAM}://"

_MAX_OUTPUT_BYTES = 1024 * 1024

_MAX_LISTED_OUTPUTS = 200
"""How many output files are listed, beginning with the session that was used last."""


@dataclass(frozen=True)
class Resource:
    """A resource, or a template for the addresses of similar resources."""

    uri: str
    """The address. In a template, it contains placeholders, such as `{race}`."""
    name: str
    description: str


TEMPLATES = (
    Resource(
        uri=f"{_SCHEME}manifest/{{command}}",
        name="command",
        description="The manifest of a command, such as config.set: its errors and its schema.",
    ),
    Resource(
        uri=f"{_SCHEME}session/{{session_id}}/{{file}}",
        name="output",
        description="An output file of a session.",
    ),
    Resource(
        uri=f"{_SCHEME}lab/{{race}}",
        name="race",
        description="A race condition, step by step.",
    ),
)
"""All templates. The one for the lab is offered only if the project has the part `lab`."""


async def list_resources(run_command: RunCommand) -> list[Resource]:
    """Return the resources that a client can read now."""
    resources = [
        Resource(
            uri=f"{_SCHEME}manifest",
            name="manifest",
            description="All commands, one per line.",
        ),
        Resource(
            uri=f"{_SCHEME}manifest/schema",
            name="schema",
            description="What all commands share: options, errors, and the form of a response.",
        ),
    ]
    for race in await _list_races(run_command):
        resource = Resource(f"{_SCHEME}lab/{race['name']}", race["name"], race["title"])
        resources.append(resource)
    for path in _list_outputs()[:_MAX_LISTED_OUTPUTS]:
        # A file name can contain bytes that are not UTF-8. Quote these bytes as they are.
        uri = f"{_SCHEME}session/{quote(path, errors='surrogateescape')}"
        resources.append(Resource(uri, printable(path), "An output of a session."))
    return resources


async def list_templates(run_command: RunCommand) -> list[Resource]:
    """Return the templates that a client can use."""
    has_lab = bool(await _list_races(run_command))
    return [template for template in TEMPLATES if has_lab or template.name != "race"]


async def read_resource(run_command: RunCommand, uri: str) -> str | None:
    """Return the text of a resource, or None if there is no such resource."""
    # Restore bytes that are not UTF-8: `list_resources` quotes them in file names.
    path = unquote(uri.removeprefix(_SCHEME), errors="surrogateescape")
    kind, _slash, name = path.partition("/")
    if kind == "manifest":
        return await _read_manifest(run_command, name)
    if kind == "lab":
        races = [race["name"] for race in await _list_races(run_command)]
        if name not in races:
            return None
        report = await run_command(["lab", "run", "--format=text", "--timeout=60s", "--", name])
        return report.decode() or None
    if kind == "session":
        session_id, _slash, file = name.partition("/")
        return _read_output(session_id, file)
    return None


async def _read_manifest(run_command: RunCommand, name: str) -> str | None:
    """Return the manifest of a command, or None if there is no such command.

    If the name is empty, return the list of all commands. If it is `schema`, return what all
    commands have in common, such as the form of a response.
    """
    command = ["manifest"]
    if name == "schema":
        command.append("--schema")
    elif name:
        command += ["--", name]
    line = await run_command(command)
    if not json.loads(line)["ok"]:
        return None
    return line.decode()


async def _list_races(run_command: RunCommand) -> list[dict[str, Any]]:
    """Return the races of the lab, each with its name and its title.

    Return an empty list if the project does not have the part `lab`.
    """
    response = json.loads(await run_command(["lab", "list"]))
    if not response["ok"]:
        return []
    races: list[dict[str, Any]] = response["data"]["scenarios"]
    return races


def _list_outputs() -> list[str]:
    """Return the paths of all output files of sessions, relative to the directory of all sessions.

    Files whose names begin with a dot are left out. They are no output: the tool uses them itself.
    """
    root = session_root()
    paths = []
    for session in list_sessions(root):
        for path in sorted(Path(session.path).rglob("[!.]*")):
            if path.is_file():
                paths.append(path.relative_to(root).as_posix())
    return paths


def _read_output(session_id: str, file: str) -> str | None:
    """Return the text of an output file of a session.

    Return None if there is no such file, if it is larger than 1 MiB, or if it is outside of the
    directory of the session, where a path with `..` or a symbolic link can lead.
    """
    # EXPECTED: the file or the session cannot be read. ValueError: the session id is invalid, or
    # the path contains a NUL character.
    with suppress(*EXPECTED, ValueError):
        directory = (session_root() / check_session_id(session_id, "the URI")).resolve()
        path = (directory / file).resolve()
        is_output = path.is_relative_to(directory) and path.is_file()
        if is_output and path.stat().st_size <= _MAX_OUTPUT_BYTES:
            return path.read_text(errors="backslashreplace")
    return None
