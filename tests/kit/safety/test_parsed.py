"""What a large file says is parsed once, and never believed for another text."""

import json
import tomllib
from pathlib import Path

import pytest

from sampletool.kit.safety.parsed import recall, remember
from sampletool.kit.safety.toml_file import read_toml

TEXT = "".join(f'[table{n}]\nname = "ä{n}"\nnumbers = [1, -2.5, 1e300, inf]\nflag = true\n' for n in range(500))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / ".tool").mkdir(mode=0o700)
    path = tmp_path / "tool.toml"
    path.write_text(TEXT)
    return path


def test_what_is_remembered_is_what_parsing_gives_and_is_used(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(file, TEXT, tomllib.loads(TEXT))

    assert recall(file, TEXT) == tomllib.loads(TEXT)
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("it was parsed again"))
    assert read_toml(file).document["table7"]["name"] == "ä7"


def test_another_text_is_never_taken_for_it(file: Path) -> None:
    remember(file, TEXT, tomllib.loads(TEXT))

    file.write_text(TEXT.replace("ä7", "ö7"))

    assert read_toml(file).document["table7"]["name"] == "ö7"


@pytest.mark.parametrize("content", ["", "7", "[1]", '["x", {}]', "[" * 100_000, "\udcff"])
def test_nonsense_in_its_place_is_as_if_it_were_not_there(file: Path, content: str) -> None:
    (file.parent / ".tool" / "tool.toml.json").write_text(content, errors="surrogateescape")

    assert recall(file, TEXT) is None


def test_what_others_may_write_to_is_not_believed(file: Path) -> None:
    remember(file, TEXT, tomllib.loads(TEXT))

    (file.parent / ".tool").chmod(0o777)

    assert recall(file, TEXT) is None


def test_a_date_or_a_small_file_is_not_kept(file: Path) -> None:
    dated = f"{TEXT}\nday = 2024-01-01\n"
    for text in (dated, "small = 1\n"):
        remember(file, text, tomllib.loads(text))

        assert list((file.parent / ".tool").iterdir()) == []


def test_it_is_json_that_a_person_can_look_at(file: Path) -> None:
    remember(file, TEXT, tomllib.loads(TEXT))

    assert json.loads((file.parent / ".tool" / "tool.toml.json").read_text())[1]["table3"]["flag"] is True
