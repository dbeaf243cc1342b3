"""What the manifest says about the command of this part. Programs decide by it what to run."""

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import describe, find_commands


def test_the_manifest_says_how_to_start_a_server_and_how_it_can_fail() -> None:
    command = dict(find_commands(root_command()))["mcp"]

    manifest = describe("mcp", command)

    assert command.spec.takes_stdout
    assert (manifest["effect"], manifest["reads"], manifest["locks"]) == ("nothing", [], [])
    assert manifest["errors"].keys() == {
        "EXTRA_NOT_INSTALLED",
        "ADDRESS_UNAVAILABLE",
        "TOKEN_REQUIRED",
    }
    assert manifest["examples"] == [
        "tool mcp --print-config",
        "tool mcp --only state,sample --print-config",
    ]
