"""What must not be shown."""

import pytest

from sampletool.kit.contract.text import is_secret, redact


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:hunter2@host/db",
        "redis://u:pa/hunter2@h",
        "postgres://u:p@hunter2@h",
        "redis//u:hunter2@h/0",
        "user:hunter2@host",
        "password='hunter2 x' host=h",
        "password = hunter2",
        "Authorization: Bearer hunter2",
    ],
)
def test_a_password_is_taken_out(text: str) -> None:
    assert "hunter2" not in redact(text)


@pytest.mark.parametrize("text", ["12:30", "http://host:80/path", "a@b", "key: value", "sqlite:///x/y.db"])
def test_what_is_no_password_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "key", ["token", "db.password", "pwd", "api_key", "auth", "X.Passphrase", "creds", "dsn", "secret"]
)
def test_secret_keys_are_known(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize("key", ["author", "jobs", "compass", "keyboard", "level"])
def test_others_are_not(key: str) -> None:
    assert not is_secret(key)
