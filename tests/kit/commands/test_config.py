"""`tool config get`, `list`, `unset`, `explain` and `path`."""

from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.commands.config import list as config_list
from sampletool.kit.commands.config._editor import EditorFailed, NoEditor, NoTerminal
from sampletool.kit.commands.config._showing import value_to_show
from sampletool.kit.commands.config.edit import ChangedMeanwhile
from sampletool.kit.commands.config.explain import Candidate, Explanation
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import KeyNotFound, VersionConflict
from sampletool.kit.contract.table import header_row
from sampletool.kit.program import env_variable
from sampletool.kit.testing.tool import Tool, declared_specs


@pytest.fixture
def file(workspace: Path) -> Path:
    """Return the settings file of the workspace."""
    return workspace / "tool.toml"


def listed(tool: Tool, *options: str) -> dict[str, dict[str, Any]]:
    """Return the settings that `config list` shows, by their keys."""
    settings = tool("config", "list", *options).data["settings"]
    return {setting["key"]: setting for setting in settings}


@pytest.mark.usefixtures("workspace")
def test_get_returns_the_value_and_its_source(tool: Tool) -> None:
    data = tool("config", "get", "level").data

    assert (data["key"], data["value"], data["source"]) == ("level", 1, "project")


@pytest.mark.usefixtures("workspace")
def test_each_source_wins_over_those_that_follow_it(tool: Tool) -> None:
    def winner(*options: str, **environ: str) -> tuple[object, object]:
        data = tool("config", "get", "lock_timeout", *options, stdin=b"", **environ).data
        return data["value"], data["source"]

    assert winner() == ("auto", "default")
    tool("config", "set", "--global", "lock_timeout", "1s")
    assert winner() == ("1s", "user")
    tool("config", "set", "lock_timeout", "2s")
    assert winner() == ("2s", "project")
    assert winner(TOOL_LOCK_TIMEOUT="3s") == ("3s", "environment")
    assert winner("--lock-timeout", "4s", TOOL_LOCK_TIMEOUT="3s") == ("4s", "flag")

    sources = tool("config", "explain", "lock_timeout", TOOL_LOCK_TIMEOUT="3s").data["sources"]
    assert [(source["source"], source["value"], source["wins"]) for source in sources] == [
        ("environment", "3s", True),
        ("project", "2s", False),
        ("user", "1s", False),
        ("default", "auto", False),
    ]


@pytest.mark.parametrize("command", ["get", "explain"])
@pytest.mark.usefixtures("workspace")
def test_a_misspelled_key_is_not_found_with_a_hint(tool: Tool, command: str) -> None:
    ran = tool("config", command, "levle")

    assert (ran.status, ran.code) == (5, "KEY_NOT_FOUND")
    assert "'level'" in ran.error["suggestion"]


@pytest.mark.usefixtures("workspace")
def test_a_whole_table_can_be_read(tool: Tool) -> None:
    tool("config", "set", "a.b=1", "a.token=x")

    value = tool("config", "get", "a").data["value"]

    assert value == {"b": 1, "token": "***"}


def test_everything_below_a_secret_key_is_masked() -> None:
    value = {"new": "hunter2", "old": ["hunter2"]}

    shown = value_to_show(("token",), value, reveal=False)
    revealed = value_to_show(("token",), value, reveal=True)

    assert shown == {"new": "***", "old": "***"}
    assert revealed == value


def test_the_passwords_of_urls_in_a_list_are_masked() -> None:
    urls = ["redis://u:hunter2@h", "redis://h", 3]

    shown = value_to_show(("hosts",), urls, reveal=False)
    revealed = value_to_show(("hosts",), urls, reveal=True)

    assert shown == ["redis://u:***@h", "redis://h", 3]
    assert revealed == urls


@pytest.mark.parametrize("command", [["get", "store"], ["list"], ["explain", "store"]])
@pytest.mark.usefixtures("workspace")
def test_a_password_in_a_url_is_never_shown(tool: Tool, command: list[str]) -> None:
    tool("config", "set", "store", "-", stdin=b"postgresql://u:hunter2@host/db")

    ran = tool("config", *command)

    assert b"hunter2" not in ran.stdout
    assert b"postgresql://u:***@host/db" in ran.stdout


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1979-05-27T07:32:00Z", "1979-05-27T07:32:00+00:00"),
        ("nan", "nan"),
        ("[inf, 1]", ["inf", 1]),
    ],
)
def test_a_value_that_json_does_not_know_is_shown_as_in_toml(
    tool: Tool,
    file: Path,
    text: str,
    value: object,
) -> None:
    file.write_text(f"[settings]\nkey = {text}\n")

    assert tool("config", "get", "key").data["value"] == value


def test_a_value_that_the_tool_cannot_use_is_listed_with_a_warning(tool: Tool, file: Path) -> None:
    file.write_text("[settings]\nsession_ttl = -1\nlevel = -1\njobs = 'many'\n")

    answer = tool("config", "list").response

    jobs = [setting for setting in answer["data"]["settings"] if setting["key"] == "jobs"]
    assert [setting["value"] for setting in jobs] == ["many"]
    assert {warning["code"] for warning in answer["warnings"]} == {"INVALID_VALUE"}
    assert [warning["message"].split(":")[0] for warning in answer["warnings"]] == [
        "Invalid value for jobs",
        "Invalid value for session_ttl",
    ]


@pytest.mark.usefixtures("workspace")
def test_a_key_that_is_no_setting_of_the_tool_is_explained_without_help(tool: Tool) -> None:
    own_key = tool("config", "explain", "level").data
    setting = tool("config", "explain", "jobs").data

    assert {"help", "deprecated"} & own_key.keys() == set()
    assert setting["help"].startswith("How many jobs")


@pytest.mark.usefixtures("workspace")
def test_every_key_is_listed_in_the_order_of_the_names(tool: Tool) -> None:
    tool("config", "set", "--global", "z=1")

    data = tool("config", "list").data

    keys = [setting["key"] for setting in data["settings"]]
    assert keys == sorted(keys)
    assert {"level", "z", "jobs", "format", "session_ttl", "lock_timeout"} <= set(keys)
    assert data["version"] == tool("config", "get", "level").data["version"]
    assert list(listed(tool, "--global")) == ["z"]


def test_an_empty_file_of_the_user_has_nothing_to_list(tool: Tool) -> None:
    text = tool("config", "list", "--global", "--format", "text").text

    assert text == "No key has a value.\n"


def test_a_list_shows_200_characters_of_a_value_and_its_length(tool: Tool, file: Path) -> None:
    long_list = [123] * 100
    file.write_text(f"[settings]\nlong = '{'x' * 5000}'\nmany = {long_list}\n")

    settings = listed(tool)
    text = tool("config", "list", "--format", "text").text
    whole = tool("config", "get", "long").data["value"]

    assert (settings["long"]["value"], settings["long"]["length"]) == ("x" * 200, 5000)
    assert settings["many"]["value"] == str(long_list)[:200]
    assert settings["many"]["length"] == 500
    assert "length" not in settings["jobs"]
    assert f"{'x' * 200}… (5000 characters)" in text
    assert whole == "x" * 5000


def test_the_caller_of_config_get_can_limit_the_value(tool: Tool) -> None:
    tool("config", "set", "long", "x" * 5000)

    whole = tool("config", "get", "long")
    limited = tool("config", "get", "long", "--max-chars", "10")

    assert "truncated" not in whole.meta
    assert (limited.data["value"], limited.data["length"]) == ("x" * 10, 5000)
    assert limited.meta["truncated"] is True
    assert tool("config", "list").meta["truncated"] is True


def test_a_list_can_show_the_origin_of_each_value(tool: Tool, file: Path) -> None:
    options = ["--show-origin", "--lock-timeout", "3s"]

    data = tool("config", "list", *options, TOOL_JOBS="4").data
    text = tool("config", "list", "--show-origin", "--format", "text").text

    origins = {setting["key"]: setting["origin"] for setting in data["settings"]}
    assert origins["level"] == str(file)
    assert origins["jobs"] == "TOOL_JOBS"
    assert origins["lock_timeout"] == "--lock-timeout"
    assert origins["session_ttl"] == "default"
    assert text.splitlines()[0].split() == ["KEY", "VALUE", "SOURCE", "ORIGIN"]
    assert "origin" not in listed(tool)["level"]


def test_a_list_has_100_keys_and_a_cursor_for_the_others(tool: Tool, file: Path) -> None:
    lines = [f"k{number:03} = 1" for number in range(102)]
    file.write_text("\n".join(["[settings]", *lines]))

    first = tool("config", "list")
    rest = tool("config", "list", "--after", first.meta["next_cursor"])

    keys = [setting["key"] for ran in (first, rest) for setting in ran.data["settings"]]
    assert len(first.data["settings"]) == 100
    assert keys == sorted(set(keys))
    assert {"k000", "k101", "session_ttl"} <= set(keys)


def test_a_key_that_looks_like_an_unset_variable_is_listed(tool: Tool, file: Path) -> None:
    file.write_text('[settings]\nnull = 1\n"a\\u0007b" = 2\n')

    assert {"null", '"a\\u0007b"'} <= listed(tool).keys()


def test_unset_removes_the_keys_that_have_a_value_and_keeps_everything_else(
    tool: Tool,
    file: Path,
) -> None:
    before = file.read_text()
    tool("config", "set", "a=1", "b=2")

    forecast = tool("config", "unset", "missing", "a", "b", "--dry-run").data
    removed = tool("config", "unset", "missing", "a", "b").data
    again = tool("config", "unset", "a", "no.such").data

    effects = [change["effect"] for change in removed["changes"]]
    assert forecast["changes"] == removed["changes"]
    assert effects == ["unchanged", "deleted", "deleted"]
    assert removed["effect"] == "deleted"
    assert [change["key"] for change in again["changes"]] == ["a", "no.such"]
    assert again["effect"] == "unchanged"
    assert file.read_text() == before


@pytest.mark.usefixtures("workspace")
def test_a_table_is_not_unset_by_accident(tool: Tool) -> None:
    tool("config", "set", "a.b", "1")

    ran = tool("config", "unset", "a")

    assert ran.code == "VALIDATION_ERROR"
    assert "a.b" in ran.error["suggestion"]


def test_all_wrong_keys_of_an_unset_are_reported_at_once(tool: Tool) -> None:
    ran = tool("config", "unset", "a b", "good", "=")

    assert [mistake["value"] for mistake in ran.error["errors"]] == ["a b", "="]


def test_path_shows_which_file_would_change(tool: Tool, file: Path, home: Path) -> None:
    project = tool("config", "path").data
    user = tool("config", "path", "--global").data

    assert project == {"path": str(file), "scope": "project", "exists": True}
    assert (user["scope"], user["exists"]) == ("user", False)
    assert user["path"].startswith(str(home))


@pytest.mark.usefixtures("workspace")
def test_the_user_s_file_has_no_defaults(tool: Tool) -> None:
    merged = tool("config", "get", "jobs")
    from_file = tool("config", "get", "jobs", "--global")

    assert merged.data["source"] == "default"
    assert from_file.code == "KEY_NOT_FOUND"


@pytest.mark.usefixtures("workspace")
def test_an_invalid_setting_is_reported_with_its_source(tool: Tool) -> None:
    ran = tool("config", "set", "a", "1", TOOL_LOCK_TIMEOUT="soon")

    assert ran.code == "VALIDATION_ERROR"
    assert "TOOL_LOCK_TIMEOUT" in ran.error["message"]
    assert "a" not in listed(tool)


@pytest.mark.usefixtures("workspace")
def test_a_value_is_printed_as_text_on_request(tool: Tool) -> None:
    tool("config", "set", "name", "a b")

    name = tool("config", "get", "name", "--format", "text").text
    level = tool("config", "get", "level", "--format", "text").text

    assert (name, level) == ("a b\n", "1\n")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("jobs", "3", 3), ("lock_timeout", "0", 0), ("jobs", "auto", "auto")],
)
@pytest.mark.usefixtures("workspace")
def test_a_value_has_the_same_type_from_each_source(
    tool: Tool,
    name: str,
    text: str,
    value: object,
) -> None:
    tool("config", "set", name, text)

    from_file = tool("config", "get", name).data
    from_variable = tool("config", "get", name, stdin=b"", **{env_variable(name): text}).data

    assert (from_file["value"], from_file["source"]) == (value, "project")
    assert (from_variable["value"], from_variable["source"]) == (value, "environment")
    assert type(from_variable["value"]) is type(from_file["value"])


@pytest.mark.parametrize("command", ["set", "get", "unset"])
@pytest.mark.usefixtures("workspace")
def test_a_key_with_too_many_parts_is_refused(tool: Tool, command: str) -> None:
    value = ["1"] if command == "set" else []

    ran = tool("config", command, ".".join("a" * 900), *value)

    assert ran.code == "VALIDATION_ERROR"
    assert "at most 100 parts" in ran.error["message"]


@pytest.mark.usefixtures("workspace")
def test_a_deep_key_is_set_or_refused(tool: Tool) -> None:
    too_deep = tool("config", "set", ".".join("a" * 100), "1")
    deep = ".".join("a" * 30)

    assert too_deep.code == "INVALID_TOML"
    assert tool("config", "set", deep, "1").data["effect"] == "created"
    assert tool("config", "get", deep).data["value"] == 1
    assert tool("config", "unset", deep).data["effect"] == "deleted"


# What the text shows


def test_the_text_of_an_explanation_marks_the_source_that_wins() -> None:
    wins = Candidate(
        source="project",
        where="/w/tool.toml",
        value=[1, "a"],
        length=None,
        wins=True,
        former_name="old",
    )
    loses = Candidate(
        source="default",
        where="default",
        value="auto",
        length=None,
        wins=False,
        former_name=None,
    )
    explanation = Explanation(
        key="jobs",
        value=[1, "a"],
        length=None,
        source="project",
        sources=[wins, loses],
        help="How many.",
        deprecated="Use more.",
    )

    assert explanation.lines() == [
        'jobs = [1, "a"]',
        "How many.",
        "Deprecated. Use more.",
        '-> project: [1, "a"]  (/w/tool.toml, as old)',
        "   default: auto  (default)",
    ]


def test_the_text_of_a_key_that_the_tool_does_not_know_is_short() -> None:
    explanation = Explanation(
        key="mine",
        value=1,
        length=None,
        source="user",
        sources=[],
        help=None,
        deprecated=None,
    )

    assert explanation.lines() == ["mine = 1"]


def _setting(**changes: Any) -> config_list.ListedSetting:
    members: dict[str, Any] = {
        "key": "a",
        "value": 1,
        "source": "user",
        "version": "v1",
        "length": None,
        "origin": None,
    }
    return config_list.ListedSetting(**{**members, **changes})


def test_the_text_of_a_list_has_a_column_for_origins_only_on_request() -> None:
    plain = config_list.Listing([_setting(), _setting(value="xy", length=300)], "v1", None)
    with_origins = config_list.Listing([_setting(origin="/w")], "v1", None)

    assert plain.lines() == [
        header_row("key", "value", "source"),
        ("a", "1", "user"),
        ("a", "xy… (300 characters)", "user"),
    ]
    assert with_origins.lines() == [
        header_row("key", "value", "source", "origin"),
        ("a", "1", "user", "/w"),
    ]
    assert config_list.Listing([], "v1", None).lines() == ["No key has a value."]


# What the commands promise


@pytest.mark.parametrize(
    ("name", "promised"),
    [
        (
            "config.edit",
            CommandSpec(
                effect="settings",
                errors=(NoTerminal, NoEditor, EditorFailed, ChangedMeanwhile),
                locks=("settings file",),
                reads=("settings",),
                needs_terminal=True,
            ),
        ),
        (
            "config.explain",
            CommandSpec(effect="nothing", errors=(KeyNotFound,), reads=("settings",)),
        ),
        ("config.get", CommandSpec(effect="nothing", errors=(KeyNotFound,), reads=("settings",))),
        ("config.list", CommandSpec(effect="nothing", reads=("settings",))),
        ("config.path", CommandSpec(effect="nothing", reads=("settings",))),
        (
            "config.set",
            CommandSpec(
                effect="settings",
                errors=(VersionConflict,),
                locks=("settings file",),
                reads=("settings", "stdin"),
                stdin_arguments=("words",),
            ),
        ),
        (
            "config.unset",
            CommandSpec(
                effect="settings",
                errors=(VersionConflict,),
                locks=("settings file",),
                reads=("settings",),
            ),
        ),
    ],
)
def test_each_command_promises_what_it_changes_and_needs(
    name: str,
    promised: CommandSpec,
) -> None:
    spec = declared_specs()[name]

    # The other members are texts for people.
    assert spec._replace(destroys="", before=(), examples=()) == promised
    assert spec.examples != ()
    assert (spec.destroys != "") == (spec.effect != "nothing")
