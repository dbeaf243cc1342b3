"""sampletool/sample/job_directory.py: a command sees what was declared, and nothing else."""

from pathlib import Path

import pytest

from sampletool.kit.context import Context
from sampletool.kit.safety.signals import Signals
from sampletool.sample.job_directory import create_job_directory, job_environment


def write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)


def test_inputs_and_needs_are_at_their_places_and_nothing_else(tmp_path: Path) -> None:
    directory = tmp_path / "job"
    write(tmp_path, "workspace/data/a.csv", "workspace/data/b.csv", "version/x")

    create_job_directory(
        directory, tmp_path / "workspace", ["data/a.csv"], {"t": tmp_path / "version"}
    )

    assert (directory / "data" / "a.csv").read_text() == "workspace/data/a.csv"
    assert (directory / "out" / "t" / "x").read_text() == "version/x"
    assert sorted(path.name for path in directory.rglob("*")) == ["a.csv", "data", "out", "t"]


def test_a_directory_that_exists_already_belongs_to_another_command(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        create_job_directory(tmp_path, tmp_path, [], {})


def test_the_environment_has_few_variables_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool.toml").touch()
    monkeypatch.chdir(tmp_path)
    passed_on = {
        name: f"my {name}"
        for name in ("PATH", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "TOOL_TRACE_ID")
    }
    for name, value in passed_on.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("MY_TOOL", "x")
    context = Context(Signals())

    environment = job_environment(context)

    assert environment.items() >= passed_on.items()
    assert {"HOME", "TMPDIR", "XDG_STATE_HOME"} <= environment.keys()
    assert environment["TOOL_WORKSPACE"] == str(tmp_path)
    assert environment["TOOL_SESSION_ID"] == context.session_id
    assert not {"PYTHONPATH", "MY_TOOL"} & environment.keys()
