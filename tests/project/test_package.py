"""What is installed from an index: a real wheel is built, looked into, and installed."""

import os
import re
import subprocess
import sys
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from sampletool import REPOSITORY
from sampletool.kit.program import PACKAGE, PROGRAM
from tests.kit.trees import ROOT

_IN_SHARE = {
    f"man/man1/{PROGRAM}.1",
    f"bash-completion/completions/{PROGRAM}",
    f"zsh/site-functions/_{PROGRAM}",
    f"fish/vendor_completions.d/{PROGRAM}.fish",
    f"{PROGRAM}/SKILL.md",
    f"{PROGRAM}/llms.txt",
}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    builder = Path(sys.prefix, "bin", "hatchling")
    if not builder.exists():
        pytest.skip("hatchling is not installed: make .venv/.testable")
    command = [str(builder), "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    return wheel


def metadata_of(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_string(wheel.read(name).decode())


def test_a_wheel_can_be_read_on_an_index_and_works_when_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names, metadata = set(archive.namelist()), metadata_of(archive)
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True)
    call = [sys.executable, "-m", PACKAGE, "config", "set", "key1", "val1", "--json"]
    environ = {**os.environ, "PYTHONPATH": str(target)}
    ran = subprocess.run(call, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    llms, skill = ((target / "share" / PROGRAM / name).read_text() for name in ("llms.txt", "SKILL.md"))
    manual = (target / "share" / "man" / "man1" / f"{PROGRAM}.1").read_text()

    assert f"{PACKAGE}/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]
    assert {name.partition("/share/")[2] for name in names if "/share/" in name} == _IN_SHARE
    assert f".SH {PROGRAM} config set" in manual
    assert f"- [Add a command]({REPOSITORY}/blob/main/docs/kit/how-to.md)" in llms
    assert "| `config set` | settings |" in skill
    links = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    addresses = dict(entry.split(", ") for entry in metadata.get_all("Project-URL", []))
    assert addresses["Repository"] == REPOSITORY
    assert all(address.startswith(REPOSITORY) for address in addresses.values())
    assert ran.returncode == 0, ran.stdout + ran.stderr
