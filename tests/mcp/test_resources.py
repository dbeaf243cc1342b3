"""sampletool/mcp/resources.py: which resources there are, and what is in them."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.places import session_root
from sampletool.kit.program import PROGRAM
from sampletool.mcp import resources as module
from sampletool.mcp.resources import list_resources, list_templates, read_resource

RACES = [{"name": "lost-update", "title": "A lost update"}]


class FakeCommands:
    """Commands that return fixed responses, and that note how they were called."""

    def __init__(self, *, has_lab: bool = True) -> None:
        self.calls: list[list[str]] = []
        self._has_lab = has_lab

    async def run(self, argv: list[str]) -> bytes:
        self.calls.append(argv)
        if argv[:2] == ["lab", "run"]:
            return b"step by step\n"
        if argv == ["lab", "list"] and self._has_lab:
            return json.dumps({"ok": True, "data": {"scenarios": RACES}}).encode()
        is_known = argv in (["manifest"], ["manifest", "--schema"], ["manifest", "--", "lock.list"])
        return json.dumps({"ok": is_known, "argv": argv}).encode()


@pytest.fixture
def commands() -> FakeCommands:
    return FakeCommands()


@pytest.fixture
def session(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a new session."""
    monkeypatch.setenv("HOME", str(home))
    directory = session_root() / "s-1"
    for path in (directory.parent, directory):
        path.mkdir(mode=0o700, parents=True)
    return directory


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def read(commands: FakeCommands, path: str) -> str | None:
    text: str | None = run(read_resource(commands.run, f"{PROGRAM}://{path}"))
    return text


@pytest.mark.parametrize(
    ("path", "argv"),
    [
        ("manifest", ["manifest"]),
        ("manifest/schema", ["manifest", "--schema"]),
        ("manifest/lock.list", ["manifest", "--", "lock.list"]),
    ],
)
def test_the_manifest_is_the_response_of_a_command(
    commands: FakeCommands,
    path: str,
    argv: list[str],
) -> None:
    text = read(commands, path)

    assert commands.calls == [argv]
    assert text is not None
    assert json.loads(text)["argv"] == argv


@pytest.mark.parametrize("path", ["manifest/no", "lab/no", "no", "", "session/s-1", "session"])
def test_a_resource_that_does_not_exist_has_no_text(commands: FakeCommands, path: str) -> None:
    assert read(commands, path) is None


def test_a_race_is_the_text_that_the_lab_prints_about_it(commands: FakeCommands) -> None:
    text = read(commands, "lab/lost-update")

    assert text == "step by step\n"
    assert commands.calls[-1] == [
        *("lab", "run", "--format=text", "--timeout=60s", "--", "lost-update")
    ]


def test_a_race_about_which_the_lab_prints_nothing_is_no_resource(
    commands: FakeCommands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_command = commands.run

    async def print_nothing(argv: list[str]) -> bytes:
        if argv[:2] == ["lab", "run"]:
            return b""
        return await run_command(argv)

    monkeypatch.setattr(commands, "run", print_nothing)

    assert read(commands, "lab/lost-update") is None


def test_each_race_is_a_resource(commands: FakeCommands) -> None:
    resources = run(list_resources(commands.run))

    described = {resource.uri: (resource.name, resource.description) for resource in resources}
    assert described[f"{PROGRAM}://lab/lost-update"] == ("lost-update", "A lost update")
    assert {f"{PROGRAM}://manifest", f"{PROGRAM}://manifest/schema"} <= described.keys()


@pytest.mark.parametrize("has_lab", [True, False])
def test_the_template_of_the_lab_is_offered_only_if_there_is_a_lab(has_lab: bool) -> None:
    templates = run(list_templates(FakeCommands(has_lab=has_lab).run))

    names = ["command", "output"]
    if has_lab:
        names.append("race")
    assert [template.name for template in templates] == names


def test_outputs_are_listed_and_can_be_read_but_files_of_the_tool_itself_are_not_listed(
    commands: FakeCommands,
    session: Path,
) -> None:
    (session / "folder").mkdir()
    (session / "folder" / "a b.txt").write_text("text")
    (session / ".own").write_text("")

    resources = run(list_resources(commands.run))

    outputs = [resource for resource in resources if "session" in resource.uri]
    assert [resource.uri for resource in outputs] == [
        f"{PROGRAM}://session/s-1/folder/a%20b.txt",
    ]
    assert outputs[0].name == "s-1/folder/a b.txt"
    assert read(commands, "session/s-1/folder/a%20b.txt") == "text"


def test_only_so_many_outputs_are_listed(
    commands: FakeCommands,
    session: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MAX_LISTED_OUTPUTS", 2)
    for name in ("a", "b", "c"):
        (session / name).write_text("")

    resources = run(list_resources(commands.run))

    uris = [resource.uri for resource in resources if "session" in resource.uri]
    assert uris == [f"{PROGRAM}://session/s-1/a", f"{PROGRAM}://session/s-1/b"]


def test_a_file_outside_of_the_session_cannot_be_read(
    commands: FakeCommands,
    session: Path,
) -> None:
    secret = session.parent / "s-2" / "secret"
    secret.parent.mkdir(mode=0o700)
    secret.write_text("hunter2")
    (session / "link").symlink_to(secret)

    assert read(commands, "session/s-2/secret") == "hunter2"
    assert read(commands, "session/s-1/link") is None
    assert read(commands, "session/s-1/../s-2/secret") is None
    assert read(commands, "session/./s-2/secret") is None
    assert read(commands, f"session/s-1/{secret}") is None


@pytest.mark.parametrize(("size", "is_readable"), [(10, True), (11, False)])
def test_an_output_that_is_too_large_cannot_be_read(
    commands: FakeCommands,
    session: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    is_readable: bool,
) -> None:
    monkeypatch.setattr(module, "_MAX_OUTPUT_BYTES", 10)
    (session / "output").write_text("x" * size)

    text = read(commands, "session/s-1/output")

    assert (text == "x" * size) is is_readable
    assert (text is None) is not is_readable


@pytest.mark.parametrize("path", ["session/s-1/no", "session/s-1/a%00b", "session/s-1", "session/"])
def test_an_output_that_does_not_exist_has_no_text(
    commands: FakeCommands,
    session: Path,
    path: str,
) -> None:
    assert session.is_dir()
    assert read(commands, path) is None


def test_bytes_that_are_not_utf_8_are_shown_escaped(commands: FakeCommands, session: Path) -> None:
    (session / "a\udcff").write_bytes(b"a\xff")

    resources = run(list_resources(commands.run))

    assert resources[-1].uri == f"{PROGRAM}://session/s-1/a%FF"
    assert read(commands, "session/s-1/a%FF") == "a\\xff"
