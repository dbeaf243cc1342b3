"""sampletool/state/store_url.py: no password is shown, or accepted on the command line."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.contract.expected import EXPECTED, to_tool_error
from sampletool.state.connect import open_store
from sampletool.state.retry_policy import RetryPolicy
from sampletool.state.store import Store
from sampletool.state.store_url import refuse_password, shown_url
from tests.state.support.outcomes import raises
from tests.state.support.store_client import make_policy

SCHEMES = [
    "postgresql",
    "postgres",
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "unix",
    "sqlite",
    "memory",
    "mysql",
]
HIDDEN = "topsecret"
special = st.text(st.sampled_from(list("@:/?#;&=%[]\\ '\"\n\tä€x0+,.")), max_size=8)
around = special | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
)
passwords = st.tuples(around, around).map(HIDDEN.join)


@given(
    scheme=st.sampled_from(SCHEMES),
    password=passwords,
    options=st.sampled_from(["", "?a=b", "?a=b@c", "#x"]),
)
@example(scheme="postgresql", password=f"{HIDDEN}?x", options="")
@example(scheme="redis", password=f"a@{HIDDEN}/b", options="?a=b@c")
def test_a_password_is_not_shown_whatever_characters_it_has(
    scheme: str, password: str, options: str
) -> None:
    shown = shown_url(f"{scheme}://user:{password}@host/db{options}")

    assert shown in (f"{scheme}://host/db", f"{scheme}://…")


@given(
    password=passwords,
    typed=st.sampled_from(["{}", "postgresql:/u:{}@h/d", "u:{}@h", "Post gres://u:{}@h", "{}://h"]),
)
def test_what_is_no_url_is_not_shown_if_it_may_hold_a_password(password: str, typed: str) -> None:
    shown = shown_url(typed.format(f":{password}"))

    assert HIDDEN not in shown


@pytest.mark.parametrize(
    "url", ["postgresql://user:topsecret", "redis://h;password=topsecret", "redis://h#topsecret"]
)
def test_a_password_in_a_place_of_its_own_is_not_shown_either(url: str) -> None:
    assert HIDDEN not in shown_url(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://u:p@db.example:5432/app?sslmode=require",
            "postgresql://db.example:5432/app",
        ),
        ("postgresql://one:5432,two:5432/app", "postgresql://one:5432,two:5432/app"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock"),
        ("sqlite:///home/a:b/state.db", "sqlite:///home/a:b/state.db"),
        ("sqlit", "sqlit"),
    ],
)
def test_what_holds_no_password_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "postgres"])
@settings(max_examples=10, deadline=None)
@given(password=passwords, is_escaped=st.booleans(), is_option=st.booleans())
@example(password=f"a@{HIDDEN}", is_escaped=False, is_option=False)
@example(password=f"1/{HIDDEN}", is_escaped=False, is_option=False)
@example(password=f"{HIDDEN}@./", is_escaped=False, is_option=False)
@example(password=f"{HIDDEN}", is_escaped=True, is_option=True)
def test_no_failure_of_a_store_shows_the_password(
    scheme: str, password: str, is_escaped: bool, is_option: bool
) -> None:
    """Neither our own messages nor those that a driver wrote."""
    written = quote(password, safe="") if is_escaped else password
    url = (
        f"{scheme}://127.0.0.1:1/db?password={written}"
        if is_option
        else f"{scheme}://u:{written}@127.0.0.1:1/db"
    )

    said = failure_of(url)

    assert HIDDEN not in said


@pytest.mark.parametrize("scheme", ["postgresql", "redis"])
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(password=passwords)
@example(password=HIDDEN)
def test_a_server_that_says_the_password_back_does_not_show_it(
    scheme: str, password: str, parrot: Callable[[str], int]
) -> None:
    said = failure_of(
        f"{scheme}://u:{quote(password, safe='')}@127.0.0.1:{parrot(scheme)}/0", make_policy()
    )

    assert HIDDEN not in said
    assert "cannot be reached" not in said


@pytest.fixture
def parrot() -> Iterator[Callable[[str], int]]:
    """Yield a function that starts a server and returns its port.

    The server refuses each request. Its error repeats the request.
    """
    servers: list[Parrot] = []

    def get(scheme: str) -> int:
        if not servers:
            servers.append(Parrot(scheme))
        return servers[0].port

    yield get
    for server in servers:
        server.close()


class Parrot:
    def __init__(self, scheme: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        answer = _answer_postgres if scheme == "postgresql" else _answer_redis
        self._thread = Thread(target=self._serve, args=(answer,))
        self._thread.start()

    def _serve(self, answer: Callable[[socket.socket], None]) -> None:
        while True:
            client, _ = self._listener.accept()
            with client, suppress(OSError):
                if not self.port:
                    return
                answer(client)

    def close(self) -> None:
        port, self.port = self.port, 0
        socket.create_connection(("127.0.0.1", port)).close()
        self._thread.join()
        self._listener.close()


def _answer_redis(client: socket.socket) -> None:
    while received := client.recv(65536):
        quoted = "' '".join(received.decode().split("\r\n")).replace("\n", " ")
        client.sendall(
            f"-ERR unknown command '{quoted}', with args beginning with: '{quoted}'\r\n".encode()
        )


def _answer_postgres(client: socket.socket) -> None:
    while len(client.recv(65536)) == 8:  # it asks for encryption first
        client.sendall(b"N")
    client.sendall(b"R" + struct.pack("!ii", 8, 3))  # a password in clear text
    sent = client.recv(65536)[5:].rstrip(b"\0")
    fields = (
        b"SFATAL\0VFATAL\0C28P01\0M" + b'password authentication failed for "' + sent + b'"\0\0'
    )
    client.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:x@host/db",
        "postgresql://u:x?y@host/db",
        "postgresql://host/db?password=x",
        "postgresql://host/db?sslpassword=x",
        "postgresql://host/db?sslmode=require&ssl%70assword=x",
        "postgresql://host/db?scram_client_key=x",
        "redis://:x@host",
        "redis://host?password=x",
    ],
)
def test_a_password_on_the_command_line_is_refused(url: str) -> None:
    with raises(InvalidValues, match="on the command line"):
        refuse_password(url)


@pytest.mark.parametrize(
    "url",
    ["postgresql://u@host:5432/db?sslmode=require", "sqlite:///a:b@c/state.db", "redis://[::1]"],
)
def test_what_holds_no_password_may_be_typed(url: str) -> None:
    refuse_password(url)


def failure_of(url: str, terms: RetryPolicy | None = None) -> str:
    store: Store | None = None
    try:
        store = open_store(url, None, terms or make_policy(patience=0.0, min_server_seconds=0.001))
        store.counter_add("hits", 1)
    except EXPECTED as error:
        return str(to_tool_error(error).describe())
    finally:
        if store is not None:
            store.close()
    raise AssertionError("there is no such store")
