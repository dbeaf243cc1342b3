"""Exercise: a certificate and its key are renewed while a server reads them.

Change renew() and load() until `tool lab try` finds no broken schedule. The server must get a
certificate and the key that belongs to it.
"""

from pathlib import Path


def prepare() -> None:
    """Create the old certificate and the old key."""
    renew("old")


def worker(name: str) -> None:
    """Renew both as A, and read both as B."""
    if name == "A":
        renew("new")
    else:
        certificate, key = load()
        Path("seen").write_text(f"{certificate} {key}")


def renew(version: str) -> None:
    """Replace the certificate and the key."""
    for name in ("certificate", "key"):
        new = Path(f"{name}.new")
        new.write_text(version)
        new.rename(name)


def load() -> tuple[str, str]:
    """Return the certificate and the key."""
    return Path("certificate").read_text(), Path("key").read_text()


def invariant() -> None:
    """Check that the server read a matching pair."""
    certificate, key = Path("seen").read_text().split()
    assert certificate == key, f"the server uses the {certificate} certificate and the {key} key."
