"""The first source that has a value wins, and each source is named."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.errors import InvalidValues, KeyNotFound
from sampletool.kit.places import config_file
from sampletool.kit.program import WORKSPACE_FILE, env_variable
from sampletool.kit.safety.errors import InvalidToml
from sampletool.kit.safety.toml_file import read_toml
from sampletool.kit.settings.kinds import KnownSetting
from sampletool.kit.settings.known import SETTINGS, all_settings
from sampletool.kit.settings.precedence import Scope, Settings, Source, leaves_of, table_of
from sampletool.kit.testing.failing import failure_of, outcome_of

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a directory with a workspace's file, in which the settings are in a table."""
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / WORKSPACE_FILE).write_text("jobs = 99\n[settings]\njobs = 3\nt.a = 'project'\n")
    return directory


@pytest.fixture
def user_file() -> Path:
    path = config_file()
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text("jobs = 2\nt = {a = 'user', b = 'user'}\n")
    return path


def settings_of(
    workspace: Path | None, flags: Mapping[str, Any] | None = None, *, files_only: bool = False
) -> Settings:
    return Settings(lambda: workspace, flags, files_only=files_only)


def sources_of(settings: Settings, *key: str) -> object:
    """Return the sources as plain tuples, or the exception that was raised."""
    return outcome_of(lambda: [facts_of(source) for source in settings.sources(key)])


def source_of(settings: Settings, *key: str) -> object:
    """Return the source that wins as a plain tuple, or the exception that was raised."""
    return outcome_of(lambda: facts_of(settings.find(key)))


def facts_of(source: Source) -> tuple[object, ...]:
    return source.name, source.value, source.where


def test_a_flag_wins_over_the_environment_the_files_and_the_default(
    project: Path, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env_variable("jobs"), "4")
    settings = settings_of(project, {"jobs": "5"})

    sources = sources_of(settings, "jobs")

    assert sources == [
        ("flag", "5", "--jobs"),
        ("environment", 4, env_variable("jobs")),
        ("project", 3, str(project / WORKSPACE_FILE)),
        ("user", 2, str(user_file)),
        ("default", "auto", "default"),
    ]


def test_without_a_workspace_the_user_s_file_is_the_only_one(user_file: Path) -> None:
    settings = settings_of(None)

    sources = sources_of(settings, "jobs")

    assert sources == [("user", 2, str(user_file)), ("default", "auto", "default")]


def test_without_any_file_there_is_only_the_default() -> None:
    settings = settings_of(None)

    sources = sources_of(settings, "session_ttl")

    assert sources == [("default", "7d", "default")]


def test_if_files_are_the_only_sources_flags_variables_and_defaults_do_not_count(
    project: Path, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env_variable("jobs"), "4")
    settings = settings_of(project, {"jobs": "5"}, files_only=True)

    sources = sources_of(settings, "jobs")
    names = outcome_of(settings.names)

    assert sources == [
        ("project", 3, str(project / WORKSPACE_FILE)),
        ("user", 2, str(user_file)),
    ]
    assert names == ["jobs", "t.a", "t.b"]


@pytest.mark.usefixtures("user_file")
def test_a_key_that_the_tool_does_not_know_comes_from_files_only(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env_variable("t.a"), "4")
    settings = settings_of(project, {"t.a": "5"})

    source = source_of(settings, "t", "a")
    other = source_of(settings, "t", "b")

    assert source == ("project", "project", str(project / WORKSPACE_FILE))
    assert other == ("user", "user", str(config_file()))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("jobs", "4", 4),
        ("jobs", "auto", "auto"),
        ("lock_timeout", "5s", "5s"),
        ("lock_timeout", "5", 5),
        ("format", "json", "json"),
        ("call_log", "true", "true"),
    ],
)
def test_a_variable_has_the_type_that_its_value_would_have_in_a_file(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object
) -> None:
    monkeypatch.setenv(env_variable(name), text)

    source = source_of(settings_of(None), name)

    assert source == ("environment", value, env_variable(name))
    assert isinstance(source, tuple)
    assert type(source[1]) is type(value)


def test_an_empty_variable_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env_variable("jobs"), "")

    sources = sources_of(settings_of(None), "jobs")

    assert sources == [("default", "auto", "default")]


def test_a_flag_is_named_as_it_is_typed() -> None:
    settings = settings_of(None, {"lock_timeout": "5s"})

    source = source_of(settings, "lock_timeout")

    assert source == ("flag", "5s", "--lock-timeout")


def test_a_key_without_a_value_is_reported_with_the_files_and_the_nearest_key(
    project: Path,
    user_file: Path,
) -> None:
    settings = settings_of(project)

    error = failure_of(lambda: settings.find(("t", "aa")))

    assert isinstance(error, KeyNotFound)
    assert error.context == {
        "key": "t.aa",
        "where": f"{project / WORKSPACE_FILE} or {user_file}",
    }
    assert error.suggestion is not None
    assert "t.a" in error.suggestion


def test_a_value_is_checked_and_its_source_is_named(project: Path) -> None:
    (project / WORKSPACE_FILE).write_text("[settings]\njobs = 'many'\nsession_ttl = '2m'\n")
    settings = settings_of(project)

    error = failure_of(lambda: settings.value("jobs"))
    seconds = outcome_of(lambda: settings.value("session_ttl"))
    chosen_by_the_command = outcome_of(lambda: settings.value("lock_timeout"))

    assert isinstance(error, InvalidValues)
    assert f"jobs: 'many' (from {project / WORKSPACE_FILE})" in error.mistakes[0].message
    assert seconds == 120
    assert chosen_by_the_command is None


@pytest.mark.usefixtures("user_file")
def test_the_names_are_those_of_all_files_and_of_the_tool(project: Path) -> None:
    names = outcome_of(settings_of(project).names)

    assert names == sorted({*all_settings(), "t.a", "t.b"})


def test_the_version_is_that_of_the_file_that_config_set_changes(
    project: Path,
    user_file: Path,
) -> None:
    version_in_a_workspace = outcome_of(lambda: settings_of(project).version)
    version_elsewhere = outcome_of(lambda: settings_of(None).version)

    assert version_in_a_workspace == read_toml(project / WORKSPACE_FILE).version
    assert version_elsewhere == read_toml(user_file).version


def test_the_files_are_not_read_before_a_value_is_needed(project: Path) -> None:
    settings = settings_of(project)
    (project / WORKSPACE_FILE).write_text("[settings]\njobs = 7\n")

    first = outcome_of(lambda: settings.value("jobs"))
    (project / WORKSPACE_FILE).write_text("[settings]\njobs = 8\n")
    second = outcome_of(lambda: settings.value("jobs"))

    assert (first, second) == (7, 7)


def test_a_file_without_the_table_of_the_scope_has_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text("a = 1\n")

    whole = outcome_of(lambda: table_of(Scope("user", path), read_toml(path)))
    table = outcome_of(lambda: table_of(Scope("project", path, ("settings",)), read_toml(path)))

    assert whole == {"a": 1}
    assert table == {}


def test_a_value_in_place_of_the_table_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text("tool.x = 1\n")
    scope = Scope("project", path, ("tool", "x"))

    error = failure_of(lambda: table_of(scope, read_toml(path)))

    assert isinstance(error, InvalidToml)
    assert (error.path, error.reason) == (str(path), "tool.x is not a table")


def test_the_leaves_of_a_table_are_its_values_and_lists() -> None:
    inner = {"u": {"b": [1, {"x": 1}]}, "c": "text"}
    table = {"a": 1, "t": inner, "empty": {}}

    leaves = outcome_of(lambda: list(leaves_of(table)))
    leaves_below = outcome_of(lambda: list(leaves_of(inner, ("above",))))

    assert leaves == [(("a",), 1), (("t", "u", "b"), [1, {"x": 1}]), (("t", "c"), "text")]
    assert leaves_below == [(("above", "u", "b"), [1, {"x": 1}]), (("above", "c"), "text")]


@pytest.fixture
def renamed_setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add the setting `helpers`, which was called `workers` and `crew.size` before."""
    helpers: KnownSetting = {
        "kind": "count",
        "default": "auto",
        "help": "How many help.",
        "former_names": ("workers", "crew.size"),
    }
    with monkeypatch.context() as patch:
        patch.setitem(SETTINGS, "helpers", helpers)
        all_settings.cache_clear()
        yield
    all_settings.cache_clear()


@pytest.mark.parametrize(
    ("content", "former_name"), [("workers = 4", "workers"), ("crew.size = 4", "crew.size")]
)
@pytest.mark.usefixtures("renamed_setting")
def test_a_former_name_in_a_file_still_works_and_the_warning_names_the_file_and_the_new_name(
    project: Path, content: str, former_name: str
) -> None:
    path = project / WORKSPACE_FILE
    path.write_text(f"[settings]\n{content}\n")
    warnings: list[tuple[str, str]] = []
    settings = Settings(lambda: project, warn=lambda *warning: warnings.append(warning))

    values = [settings.value("helpers"), settings.value("helpers")]

    assert values == [4, 4]
    message = f"{former_name} in {path} is now called helpers. Rename it there."
    assert warnings == [("DEPRECATED", message)]


@pytest.mark.usefixtures("renamed_setting")
def test_a_former_name_of_a_variable_still_works_with_a_warning(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env_variable("workers"), "4")
    warnings: list[tuple[str, str]] = []
    settings = Settings(lambda: project, warn=lambda *warning: warnings.append(warning))

    value = settings.value("helpers")

    assert value == 4
    message = f"{env_variable('workers')} is now called {env_variable('helpers')}. "
    assert warnings == [("DEPRECATED", f"{message}Set {env_variable('helpers')} instead.")]


@pytest.mark.usefixtures("renamed_setting")
def test_the_present_name_wins_over_a_former_one_of_the_same_place_only(
    project: Path, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / WORKSPACE_FILE
    path.write_text("[settings]\nworkers = 3\n")
    user_file.write_text("helpers = 2\nworkers = 1\n")
    monkeypatch.setenv(env_variable("helpers"), "6")
    monkeypatch.setenv(env_variable("workers"), "5")

    sources = list(settings_of(project).sources(("helpers",)))

    assert [(source.value, source.former_name) for source in sources] == [
        (6, None),
        (3, "workers"),
        (2, None),
        ("auto", None),
    ]


@pytest.mark.usefixtures("renamed_setting")
def test_a_former_name_is_listed_under_the_present_name(project: Path) -> None:
    (project / WORKSPACE_FILE).write_text("[settings]\nworkers = 3\n")

    names = settings_of(project, files_only=True).names()

    assert names == ["helpers"]


def test_a_deprecated_setting_is_reported_if_it_has_a_value(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: KnownSetting = {**SETTINGS["jobs"], "deprecated": "Use helpers."}
    monkeypatch.setitem(SETTINGS, "jobs", jobs)
    warnings: list[tuple[str, str]] = []

    Settings(lambda: None, warn=lambda *warning: warnings.append(warning)).value("jobs")
    assert warnings == []

    Settings(lambda: project, warn=lambda *warning: warnings.append(warning)).value("jobs")
    path = project / WORKSPACE_FILE
    assert warnings == [("DEPRECATED", f"jobs ({path}) is deprecated. Use helpers.")]
