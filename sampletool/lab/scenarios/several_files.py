"""A certificate and its key are in two files.

Both are renewed, and each file is replaced with an atomic rename. A server that starts at this
moment reads the new certificate and the old key. Each file is complete, but they do not match. No
client can connect until the server restarts. Two atomic writes are not one atomic write.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from ...kit.safety.toml_file import editing_toml, parse, read_toml
from ..scenario import History, Removal, Scenario, Step, Variant

CERTIFICATE = Path("certificate")
KEY = Path("key")
BOTH = Path("both.toml")


def naive(worker: str) -> None:
    if worker == "A":
        put(CERTIFICATE, "new")
        put(KEY, "new")
    else:
        serve(CERTIFICATE.read_text(), KEY.read_text())


def wrong_look_again(worker: str) -> None:
    if worker == "A":
        put(CERTIFICATE, "new")
        put(KEY, "new")
        return
    while True:
        certificate = CERTIFICATE.read_text()
        key = KEY.read_text()
        if CERTIFICATE.read_text() == certificate:
            break
    serve(certificate, key)


def fixed(worker: str) -> None:
    if worker == "A":
        with editing_toml(BOTH) as file:
            file.text = text_of("new")
            file.write()
    else:
        both = parse(read_toml(BOTH).text)
        serve(both["certificate"], both["key"])


def put(path: Path, content: str) -> None:
    temporary = Path(f"{path}.new")
    temporary.write_text(content)
    os.replace(temporary, path)


def serve(certificate: str, key: str) -> None:
    os.write(1, json.dumps({"certificate": certificate, "key": key}).encode())


def text_of(version: str) -> str:
    return f'certificate = "{version}"\nkey = "{version}"\n'


def prepare(directory: Path) -> None:
    """Store the old version: in two files, and in one file with both values."""
    for path in (CERTIFICATE, KEY):
        (directory / path).write_text("old")
    (directory / BOTH).write_text(text_of("old"))


def look(directory: Path) -> str:
    """Return the versions of the certificate and of the key, as text."""
    # A variant that keeps both values in one file has replaced this file.
    if (directory / BOTH).read_text() != text_of("old"):
        return "new new"
    return f"{(directory / CERTIFICATE).read_text()} {(directory / KEY).read_text()}"


def invariant(history: History) -> Iterator[str]:
    """Each reader gets a certificate and the key that belongs to it."""
    for letter, read in history.responses.items():
        if read["certificate"] != read["key"]:
            yield f"{letter} uses the {read['certificate']} certificate with the {read['key']} key."
    for letter in history.failed:
        yield f"{letter} failed to read both values."


scenario = Scenario(
    title="Inconsistent read: two files that belong together",
    subtitle="A server reads the new certificate and the old key.",
    rule=(
        "Data that must match must change together: put it into one file, or publish one "
        "directory with one rename."
    ),
    happened=(
        "When both files were renewed, the database server Harper could load the new certificate "
        "before the new key. All handshakes then failed until the certificates changed again.",
        "https://github.com/HarperFast/harper/pull/1409",
    ),
    question="Both files are replaced atomically, one after the other. What can B read?",
    shared="certificate, key",
    private=("certificate", "key"),
    variants={
        "naive": Variant(
            summary="replaces the certificate, then the key; the reader reads one after the other",
            schedule="A1 B1 B2",
            explanation="B read both files after A had replaced only one of them.",
        ),
        "wrong-look-again": Variant(
            summary="reads the certificate a second time, to see whether it has changed",
            schedule="A1 B1 B2 B3",
            explanation=(
                "The certificate had changed before B started. The key had not changed yet."
            ),
        ),
        "fixed": Variant(
            summary="stores both in one file, and replaces it with one rename",
            schedule="A1 B1 A2",
            explanation="There is one name. It leads to both old values or to both new values.",
        ),
    },
    steps=(
        Step("rename certificate", "os.rename", "certificate"),
        Step("rename key", "os.rename", "key"),
        Step("read certificate", "open", "certificate", kind="read"),
        Step("read key", "open", "key", kind="read"),
        Step("rename", "os.rename", "both.toml"),
        Step("read both", "open", "both.toml", kind="read", after=("start",)),
        Step("write", "open", "both.toml", kind="write"),
    ),
    mechanisms=(
        Removal(
            "kit/safety/toml_file.py:TomlEdit.write",
            summary="write into the file line by line instead of replacing it",
            pattern="replace(before.path, content)",
            instead="""\
for end in [at for at, byte in enumerate(content, 1) if byte == 10]:
    before.path.write_bytes(content[:end])
""",
            breaks="B failed to read both values",
        ),
    ),
    symbol="sampletool.kit.safety.toml_file:TomlEdit.write",
)
