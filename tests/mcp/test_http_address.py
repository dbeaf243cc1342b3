"""sampletool/mcp/http_address.py: who may use a server."""

import pytest

from sampletool.mcp.errors import TokenRequired
from sampletool.mcp.http_address import HttpAccess, HttpAddress, check_access, parse_address

TOKEN = "a" * 16
ANY_HOST = "0.0.0.0"  # noqa: S104


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        (None, "TOOL_MCP_TOKEN is not set"),
        ("", "TOOL_MCP_TOKEN is not set"),
        (TOKEN[1:], "the one in TOOL_MCP_TOKEN is too short"),
    ],
)
def test_without_a_good_token_others_cannot_reach_a_server(
    monkeypatch: pytest.MonkeyPatch,
    token: str | None,
    problem: str,
) -> None:
    monkeypatch.delenv("TOOL_MCP_TOKEN", raising=False)
    if token is not None:
        monkeypatch.setenv("TOOL_MCP_TOKEN", token)

    with pytest.raises(TokenRequired) as refused:
        check_access(HttpAddress(ANY_HOST, 80), "me")

    assert refused.value.message == (
        f"Other machines can reach {ANY_HOST}:80, so the server needs a token: {problem}."
    )
    assert refused.value.suggestion == (
        "Set TOOL_MCP_TOKEN to a random text of at least 16 characters, "
        "for example with `openssl rand -hex 32`. Clients send it as a bearer token."
    )


def test_a_server_with_a_token_is_known_by_its_name_and_by_those_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_MCP_TOKEN", TOKEN)

    assert check_access(HttpAddress(ANY_HOST, 1), "me") == HttpAccess(
        host_names=("me", "127.0.0.1", "localhost", "[::1]"),
        token=TOKEN,
    )


@pytest.mark.parametrize(
    ("variable", "token"),
    # An empty variable counts as not set: it would be a token that anyone can guess.
    [("", None), (TOKEN, TOKEN), ("short", "short")],
)
def test_a_server_that_only_this_machine_can_reach_needs_no_token(
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    token: str | None,
) -> None:
    monkeypatch.setenv("TOOL_MCP_TOKEN", variable)

    assert check_access(HttpAddress("127.0.0.1", 1), None) == HttpAccess(
        host_names=("127.0.0.1", "localhost", "[::1]"),
        token=token,
    )
    with pytest.raises(ValueError, match="is not a loopback address"):
        check_access(HttpAddress(ANY_HOST, 1), None)


def test_each_name_of_the_server_is_allowed_with_and_without_a_port() -> None:
    access = HttpAccess(host_names=("a", "b"), token=None)

    assert access.allowed_hosts() == ["a", "b", "a:*", "b:*"]
    assert access.allowed_origins() == [
        *("http://a", "http://a:*", "https://a", "https://a:*"),
        *("http://b", "http://b:*", "https://b", "https://b:*"),
    ]


def parsed(text: str) -> HttpAddress | str:
    """Return the address in a text, or why there is none."""
    try:
        return parse_address(text)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "host", "is_loopback"),
    [
        ("127.0.0.1:8765", "127.0.0.1", True),
        ("127.9.9.9:8765", "127.9.9.9", True),
        ("localhost:8765", "localhost", True),
        ("[::1]:8765", "::1", True),
        (f"{ANY_HOST}:8765", ANY_HOST, False),
        ("[::]:8765", "::", False),
        ("example.org:8765", "example.org", False),
    ],
)
def test_an_address_is_read_with_its_host_and_port(text: str, host: str, is_loopback: bool) -> None:
    address = parsed(text)

    assert address == HttpAddress(host, 8765)
    assert isinstance(address, HttpAddress)
    assert address.is_loopback is is_loopback
    assert str(address) == text


@pytest.mark.parametrize("port", [0, 65535])
def test_a_port_may_be_as_large_as_16_bits(port: int) -> None:
    assert parsed(f"localhost:{port}") == HttpAddress("localhost", port)


@pytest.mark.parametrize(
    "text",
    [
        *("8765", ":8765", "[]:8765", "localhost", "localhost:", "a:b", "a:65536", "a:-1", "a:²"),
        "a:\N{ARABIC-INDIC DIGIT ONE}",
    ],
)
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    assert parsed(text) == f"{text!r} is not an address such as 127.0.0.1:8765"
