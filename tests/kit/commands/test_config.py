"""tool config get, list, unset, explain, path"""

from pathlib import Path

import pytest

from sampletool.kit.commands.config._showing import value_to_show as shown
from sampletool.kit.program import variable
from sampletool.kit.testing.tool import Tool


def test_get_tells_the_value_and_its_source(tool: Tool, workspace: Path) -> None:
    data = tool("config", "get", "level").data

    assert (data["key"], data["value"], data["source"]) == ("level", 1, "project")
    assert workspace


def test_flag_beats_environment_beats_project_beats_user_beats_default(
    tool: Tool,
    workspace: Path,
) -> None:
    def winner(*args: str, **environ: str) -> tuple[object, object]:
        data = tool("config", "get", "lock_timeout", *args, stdin=b"", **environ).data
        return data["value"], data["source"]

    assert winner() == ("auto", "default")
    tool("config", "set", "--global", "lock_timeout", "1s")
    assert winner() == ("1s", "user")
    tool("config", "set", "lock_timeout", "2s")
    assert winner() == ("2s", "project")
    assert winner(TOOL_LOCK_TIMEOUT="3s") == ("3s", "environment")
    assert winner("--lock-timeout", "4s", TOOL_LOCK_TIMEOUT="3s") == ("4s", "flag")
    assert workspace

    sources = tool("config", "explain", "lock_timeout", TOOL_LOCK_TIMEOUT="3s").data["sources"]
    assert [(source["source"], source["value"], source["wins"]) for source in sources] == [
        ("environment", "3s", True),
        ("project", "2s", False),
        ("user", "1s", False),
        ("default", "auto", False),
    ]


@pytest.mark.parametrize("command", ["get", "explain"])
def test_a_misspelt_key_is_not_found_with_a_hint(tool: Tool, workspace: Path, command: str) -> None:
    ran = tool("config", command, "levle")

    assert (ran.status, ran.code) == (5, "KEY_NOT_FOUND")
    assert "'level'" in ran.error["suggestion"]
    assert workspace


def test_a_whole_table_can_be_read(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a.b=1", "a.token=x")

    assert tool("config", "get", "a").data["value"] == {"b": 1, "token": "***"}
    assert workspace


def test_what_is_below_a_secret_key_is_masked_too_and_urls_in_lists_have_no_password() -> None:
    assert shown(("token",), {"new": "hunter2", "old": ["hunter2"]}, reveal=False) == {"new": "***", "old": "***"}
    urls = ["redis://u:hunter2@h", "redis://h", 3]
    assert shown(("hosts",), urls, reveal=False) == ["redis://u:***@h", "redis://h", 3]
    assert shown(("hosts",), urls, reveal=True) == urls


def test_what_json_has_no_form_for_is_shown_as_toml_writes_it(tool: Tool, workspace: Path) -> None:
    (workspace / "tool.toml").write_text("[settings]\nwhen = 1979-05-27T07:32:00Z\nratio = nan\nlist = [inf, 1]\n")

    assert tool("config", "get", "when").data["value"] == "1979-05-27T07:32:00+00:00"
    assert tool("config", "get", "ratio").data["value"] == "nan"
    assert tool("config", "get", "list").data["value"] == ["inf", 1]


def test_list_names_the_values_that_cannot_be_used(tool: Tool, workspace: Path) -> None:
    (workspace / "tool.toml").write_text("[settings]\nsession_ttl = -1\nlevel = -1\njobs = 'many'\n")

    answer = tool("config", "list").answer

    assert [one["value"] for one in answer["data"]["settings"] if one["key"] == "jobs"] == ["many"]
    assert [(warning["code"], warning["message"].split(":")[0]) for warning in answer["warnings"]] == [
        ("INVALID_VALUE", "Invalid value for jobs"),
        ("INVALID_VALUE", "Invalid value for session_ttl"),
    ]


def test_list_tells_every_key_in_a_stable_order(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "--global", "z=1")
    data = tool("config", "list").data

    keys = [setting["key"] for setting in data["settings"]]
    assert keys == sorted(keys)
    assert {"level", "z", "jobs", "format", "session_ttl", "lock_timeout"} <= set(keys)
    assert data["version"] == tool("config", "get", "level").data["version"]
    assert [s["key"] for s in tool("config", "list", "--global").data["settings"]] == ["z"]
    assert workspace


def test_unset_removes_the_keys_that_are_there_and_leaves_the_rest_unchanged(
    tool: Tool,
    workspace: Path,
) -> None:
    before = (workspace / "tool.toml").read_text()
    tool("config", "set", "a=1", "b=2")

    forecast = tool("config", "unset", "missing", "a", "b", "--dry-run").data
    removed = tool("config", "unset", "missing", "a", "b").data
    again = tool("config", "unset", "a", "no.such").data

    assert forecast["changes"] == removed["changes"]
    assert [change["effect"] for change in removed["changes"]] == ["unchanged", "deleted", "deleted"]
    assert removed["effect"] == "deleted"
    assert [change["key"] for change in again["changes"]] == ["a", "no.such"]
    assert again["effect"] == "unchanged"
    assert (workspace / "tool.toml").read_text() == before


def test_a_table_is_not_unset_by_accident(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a.b", "1")

    ran = tool("config", "unset", "a")

    assert ran.code == "VALIDATION_ERROR"
    assert "a.b" in ran.error["suggestion"]
    assert workspace


def test_path_tells_which_file_would_change(tool: Tool, workspace: Path, home: Path) -> None:
    here, own = tool("config", "path").data, tool("config", "path", "--global").data

    assert (here["path"], here["scope"], here["exists"]) == (str(workspace / "tool.toml"), "project", True)
    assert (own["scope"], own["exists"]) == ("user", False)
    assert own["path"].startswith(str(home))


def test_the_users_own_file_has_no_defaults(tool: Tool, workspace: Path) -> None:
    assert tool("config", "get", "jobs").data["source"] == "default"
    assert tool("config", "get", "jobs", "--global").code == "KEY_NOT_FOUND"
    assert workspace


def test_a_password_inside_a_url_is_never_shown(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "store", "-", stdin=b"postgresql://u:hunter2@host/db")

    for call in (["get", "store"], ["list"], ["explain", "store"]):
        ran = tool("config", *call)
        assert b"hunter2" not in ran.stdout
        assert b"postgresql://u:***@host/db" in ran.stdout
    assert workspace


def test_a_wrong_setting_names_who_gave_it(tool: Tool, workspace: Path) -> None:
    ran = tool("config", "set", "a", "1", TOOL_LOCK_TIMEOUT="soon")

    assert ran.code == "VALIDATION_ERROR"
    assert "TOOL_LOCK_TIMEOUT" in ran.error["message"]
    assert "a" not in tool("config", "list").data["settings"]
    assert workspace


def test_text_is_for_pipes_too(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "name", "a b")

    assert tool("config", "get", "name", "--format", "text").text == "a b\n"
    assert tool("config", "get", "level", "--format", "text").text == "1\n"
    assert workspace


@pytest.mark.parametrize(
    ("name", "text", "value"), [("jobs", "3", 3), ("lock_timeout", "0", 0), ("jobs", "auto", "auto")]
)
def test_a_value_has_one_type_wherever_it_comes_from(
    tool: Tool, workspace: Path, name: str, text: str, value: object
) -> None:
    tool("config", "set", name, text)

    from_file = tool("config", "get", name).data
    from_environment = tool("config", "get", name, stdin=b"", **{variable(name): text}).data

    assert (from_file["value"], from_file["source"]) == (value, "project")
    assert (from_environment["value"], from_environment["source"]) == (value, "environment")
    assert type(from_environment["value"]) is type(from_file["value"])
    assert workspace


def test_a_key_that_is_deep_is_refused_or_shown_and_never_a_crash(
    tool: Tool,
    workspace: Path,
) -> None:
    for call in (["set", ".".join("a" * 900), "1"], ["get", ".".join("a" * 900)], ["unset", ".".join("a" * 900)]):
        ran = tool("config", *call)
        assert ran.code == "VALIDATION_ERROR"
        assert "at most 100 parts" in ran.error["message"]

    assert tool("config", "set", ".".join("a" * 100), "1").code == "INVALID_TOML"

    deep = ".".join("a" * 30)
    assert tool("config", "set", deep, "1").data["effect"] == "created"
    assert tool("config", "get", deep).data["value"] == 1
    assert tool("config", "unset", deep).data["effect"] == "deleted"
    assert workspace


def test_a_list_shows_200_characters_of_a_value_and_its_length(tool: Tool, workspace: Path) -> None:
    long_list = [123] * 100
    (workspace / "tool.toml").write_text(f"[settings]\nlong = '{'x' * 5000}'\nmany = {long_list}\n")

    listed = {setting["key"]: setting for setting in tool("config", "list").data["settings"]}
    text = tool("config", "list", "--format", "text").text
    whole = tool("config", "get", "long").data["value"]

    assert (listed["long"]["value"], listed["long"]["length"]) == ("x" * 200, 5000)
    assert listed["many"]["value"] == str(long_list)[:200]
    assert listed["many"]["length"] == 500
    assert "length" not in listed["jobs"]
    assert f"{'x' * 200}… (5000 characters)" in text
    assert whole == "x" * 5000


def test_a_list_can_show_the_origin_of_each_value(tool: Tool, workspace: Path) -> None:
    ran = tool("config", "list", "--show-origin", "--lock-timeout", "3s", TOOL_JOBS="4")
    text = tool("config", "list", "--show-origin", "--format", "text").text

    origins = {setting["key"]: setting["origin"] for setting in ran.data["settings"]}
    assert origins["level"] == str(workspace / "tool.toml")
    assert origins["jobs"] == "TOOL_JOBS"
    assert origins["lock_timeout"] == "--lock-timeout"
    assert origins["session_ttl"] == "default"
    assert text.splitlines()[0].split() == ["KEY", "VALUE", "SOURCE", "ORIGIN"]
    assert "origin" not in tool("config", "list").data["settings"][0]


def test_a_list_has_100_keys_and_a_cursor_for_the_others(tool: Tool, workspace: Path) -> None:
    lines = [f"k{number:03} = 1" for number in range(102)]
    (workspace / "tool.toml").write_text("\n".join(["[settings]", *lines]))

    first = tool("config", "list")
    rest = tool("config", "list", "--after", first.meta["next_cursor"])

    keys = [setting["key"] for ran in (first, rest) for setting in ran.data["settings"]]
    assert len(first.data["settings"]) == 100
    assert keys == sorted(set(keys))
    assert {"k000", "k101", "session_ttl"} <= set(keys)


def test_a_key_that_looks_like_an_unset_variable_is_listed(tool: Tool, workspace: Path) -> None:
    (workspace / "tool.toml").write_text('[settings]\nnull = 1\n"a\\u0007b" = 2\n')

    settings = tool("config", "list").data["settings"]

    assert {"null", '"a\\u0007b"'} <= {setting["key"] for setting in settings}


def test_all_wrong_keys_of_an_unset_are_reported_at_once(tool: Tool) -> None:
    ran = tool("config", "unset", "a b", "good", "=")

    assert [mistake["value"] for mistake in ran.error["errors"]] == ["a b", "="]
