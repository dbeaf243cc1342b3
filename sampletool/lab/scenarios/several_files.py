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
from ..scenario import History, Mutation, Scenario, Step, Variant

CERTIFICATE = Path("certificate")
KEY = Path("key")
ONE_FILE = Path("both.toml")
"""The file with both values, which only the fixed variant uses."""


def naive(worker: str) -> None:
    """Renew both files as A. Read both as B, a server that starts."""
    if worker == "A":
        replace_file(CERTIFICATE, "new")
        replace_file(KEY, "new")
    else:
        serve(CERTIFICATE.read_text(), KEY.read_text())


def wrong_look_again(worker: str) -> None:
    """Read again, as B, until the certificate is unchanged. Wrong: the key may change after it."""
    if worker == "A":
        replace_file(CERTIFICATE, "new")
        replace_file(KEY, "new")
        return
    while True:
        certificate = CERTIFICATE.read_text()
        key = KEY.read_text()
        is_unchanged = CERTIFICATE.read_text() == certificate
        if is_unchanged:
            break
    serve(certificate, key)


def fixed(worker: str) -> None:
    """Renew both values in one file as A. Read this file once as B, a server that starts."""
    if worker == "A":
        with editing_toml(ONE_FILE) as file:
            file.text = toml_with_both("new")
            file.write()
    else:
        values = parse(read_toml(ONE_FILE).text)
        serve(values["certificate"], values["key"])


def replace_file(path: Path, content: str) -> None:
    """Replace a file with an atomic rename."""
    temporary = Path(f"{path}.new")
    temporary.write_text(content)
    os.replace(temporary, path)


def serve(certificate: str, key: str) -> None:
    """Print which certificate and key the server has read. The invariant compares them."""
    os.write(1, json.dumps({"certificate": certificate, "key": key}).encode())


def toml_with_both(version: str) -> str:
    """Return the content of the file that has both values in the same version."""
    return f'certificate = "{version}"\nkey = "{version}"\n'


def prepare(directory: Path) -> None:
    """Store the old version: in two files, and in one file with both values."""
    for path in (CERTIFICATE, KEY):
        (directory / path).write_text("old")
    (directory / ONE_FILE).write_text(toml_with_both("old"))


def read_state(directory: Path) -> str:
    """Return the versions of the certificate and of the key, as text, such as `new old`."""
    certificate = (directory / CERTIFICATE).read_text()
    key = (directory / KEY).read_text()
    # The fixed variant changes only the file with both values.
    has_new_values = (directory / ONE_FILE).read_text() == toml_with_both("new")
    if has_new_values:
        return "new new"
    return f"{certificate} {key}"


def invariant(history: History) -> Iterator[str]:
    """Each reader gets a certificate and the key that belongs to it."""
    # Only a reader prints a response: the versions of both files.
    for reader, response in history.responses.items():
        certificate = response["certificate"]
        key = response["key"]
        if certificate != key:
            yield f"{reader} uses the {certificate} certificate with the {key} key."
    for worker in history.failed_workers:
        yield f"{worker} failed to read both values."


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
    private_variables=("certificate", "key"),
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
        Step(name="rename certificate", event="os.rename", file="certificate"),
        Step(name="rename key", event="os.rename", file="key"),
        Step(name="read certificate", event="open", file="certificate", kind="read"),
        Step(name="read key", event="open", file="key", kind="read"),
        Step(name="rename", event="os.rename", file="both.toml"),
        Step(name="read both", event="open", file="both.toml", kind="read", after_steps=("start",)),
        Step(name="write", event="open", file="both.toml", kind="write"),
    ),
    mechanisms=(
        Mutation(
            function="kit/safety/toml_file.py:TomlEdit.write",
            summary="write into the file line by line instead of replacing it",
            original_code="replace(before.path, content)",
            replacement_code="""\
for end in [at for at, byte in enumerate(content, 1) if byte == 10]:
    before.path.write_bytes(content[:end])
""",
            expected_problem="B failed to read both values",
        ),
    ),
    production_code="sampletool.kit.safety.toml_file:TomlEdit.write",
)
