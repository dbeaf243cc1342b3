"""A certificate and its key lie in two files. They are renewed: each is written beside and renamed, as it should be.

A server that starts in this moment reads the new certificate and the old key. Each file is whole, and together they
are nothing: no client can connect until it is restarted. Two atomic writes are not one atomic write.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from ...kit.safety.toml_file import editing_toml, parse, read_toml
from ..scenario import History, Removal, Scenario, Step, Way

CERTIFICATE, KEY, BOTH = Path("certificate"), Path("key"), Path("both.toml")


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
        certificate, key = CERTIFICATE.read_text(), KEY.read_text()
        if CERTIFICATE.read_text() == certificate:
            break
    serve(certificate, key)


def fixed(worker: str) -> None:
    if worker == "A":
        with editing_toml(BOTH) as file:
            file.text = text("new")
            file.write()
    else:
        both = parse(read_toml(BOTH).text)
        serve(both["certificate"], both["key"])


def put(path: Path, content: str) -> None:
    beside = Path(f"{path}.new")
    beside.write_text(content)
    os.replace(beside, path)


def serve(certificate: str, key: str) -> None:
    os.write(1, json.dumps({"certificate": certificate, "key": key}).encode())


def text(generation: str) -> str:
    return f'certificate = "{generation}"\nkey = "{generation}"\n'


def prepare(directory: Path) -> None:
    for path in (CERTIFICATE, KEY):
        (directory / path).write_text("old")
    (directory / BOTH).write_text(text("old"))


def look(directory: Path) -> str:
    if (directory / BOTH).read_text() != text("old"):
        return "new new"
    return f"{(directory / CERTIFICATE).read_text()} {(directory / KEY).read_text()}"


def invariant(history: History) -> Iterator[str]:
    """A reader gets a certificate with its own key, the old ones or the new ones."""
    for letter, read in history.answers.items():
        if read["certificate"] != read["key"]:
            yield f"{letter} serves the {read['certificate']} certificate with the {read['key']} key."
    for letter in history.failed:
        yield f"{letter} could not read both."


scenario = Scenario(
    title="Two files that belong together, read while they change",
    rule="What has to fit together has to change together: one file, or one directory, published by one rename.",
    happened=(
        "Harper, a database server: when both were renewed, a process could load the new certificate before the new "
        "key; then every handshake failed until the certificates changed again.",
        "https://github.com/HarperFast/harper/pull/1409",
    ),
    question="Both files are replaced atomically, one after the other. What can B read?",
    shared="certificate, key",
    private=("certificate", "key"),
    ways={
        "naive": Way(
            says="replace the certificate, replace the key; read the certificate, read the key",
            shows="A1 B1 B2",
            because="B came when one of the two was replaced.",
        ),
        "wrong-look-again": Way(
            says="the reader looks again whether the certificate is still the one that it has read",
            shows="A1 B1 B2 B3",
            because="it is: the certificate changed before B began, the key has not changed yet.",
        ),
        "fixed": Way(
            says="both in one file: tool config set certificate=... key=..., one change and one rename",
            shows="A1 B1 A2",
            because="there is one name, and behind it are the old two or the new two.",
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
            says="writing into the file, line by line, instead of replacing it",
            pattern="replace(before.path, content)",
            instead="""\
for end in [at for at, byte in enumerate(content, 1) if byte == 10]:
    before.path.write_bytes(content[:end])
""",
            breaks="B could not read both",
        ),
    ),
    symbol="sampletool.kit.safety.toml_file:TomlEdit.write",
    still_broken_by="a reader that opens the file twice, and files that a program wants under two names: then a "
    "directory for each generation, and one link to the current one that is replaced by a rename.",
)
