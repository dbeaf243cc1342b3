"""The solution of the exercise several-files."""

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
    """Replace the certificate and the key, which are in one file, with one rename."""
    new = Path("both.new")
    new.write_text(f"{version} {version}")
    new.rename("both")


def load() -> tuple[str, str]:
    """Return the certificate and the key."""
    certificate, key = Path("both").read_text().split()
    return certificate, key


def invariant() -> None:
    """Check that the server read a matching pair."""
    certificate, key = Path("seen").read_text().split()
    assert certificate == key, f"the server uses the {certificate} certificate and the {key} key."
