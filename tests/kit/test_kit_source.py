"""kit/kit_source.py: the files of a kit are read from any form, and nothing else is."""

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sampletool.kit import kit_source
from sampletool.kit.kit_source import NoUsableKit, read_kit
from sampletool.kit.testing.trees import commit

_KIT = {"REVISION": b"7\n", "app.py": b"app", "commands/log.py": b"log"}
_PROJECT = {
    "pyproject.toml": b"[project]",
    "acme/__init__.py": b"",
    **{f"acme/kit/{path}": content for path, content in _KIT.items()},
    "acme/stock/template/acme/kit/REVISION": b"not this one",
}


def write_files(directory: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    return directory


def as_kit_folder(directory: Path) -> Path:
    return write_files(directory / "acme", _KIT)


def as_checkout(directory: Path) -> Path:
    checkout = write_files(directory / "checkout", _PROJECT)
    commit(checkout)
    (checkout / "acme" / "kit" / "untracked.py").touch()
    return checkout


def as_plain_folder(directory: Path) -> Path:
    folder = write_files(directory / "folder", _PROJECT)
    return write_files(folder, {"acme/kit/__pycache__/app.cpython-311.pyc": b"bytecode"})


def as_wheel(directory: Path) -> Path:
    wheel = directory / "acme-7-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.mkdir("acme")
        for path, content in _PROJECT.items():
            archive.writestr(path, content)
    return wheel


def as_sdist(directory: Path) -> Path:
    folder = write_files(directory / "acme-7", _PROJECT)
    sdist = directory / "acme-7.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        archive.add(folder, "acme-7")
    return sdist


_FORMS = [as_kit_folder, as_checkout, as_plain_folder, as_wheel, as_sdist]


@pytest.mark.parametrize("create_source", _FORMS, ids=lambda function: function.__name__)
def test_the_kit_is_read_from_every_form(
    tmp_path: Path,
    create_source: Callable[[Path], Path],
) -> None:
    source = create_source(tmp_path)

    assert read_kit(source) == _KIT


def test_a_file_that_was_deleted_from_a_checkout_is_left_out(tmp_path: Path) -> None:
    checkout = as_checkout(tmp_path)
    (checkout / "acme" / "kit" / "app.py").unlink()

    assert read_kit(checkout).keys() == {"REVISION", "commands/log.py"}


@pytest.mark.parametrize("create_source", [as_plain_folder, as_wheel, as_sdist])
def test_a_source_without_a_kit_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    create_source: Callable[[Path], Path],
) -> None:
    monkeypatch.setattr(kit_source, "_IDENTIFYING_FILE", "MISSING")
    source = create_source(tmp_path)

    with pytest.raises(NoUsableKit, match="has no kit: no file of it is called kit/MISSING"):
        read_kit(source)


@pytest.mark.timeout(10)
def test_a_fifo_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(NoUsableKit, match="neither a folder nor a wheel or an sdist"):
        read_kit(tmp_path / "pipe")


def test_a_missing_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoUsableKit, match="neither a folder nor a wheel or an sdist"):
        read_kit(tmp_path / "missing")


def tar_with(directory: Path, name: str, **attributes: object) -> Path:
    """Return an sdist with a kit, and with one more member that has these attributes."""
    sdist = directory / "a.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        for path, content in _KIT.items():
            archive.addfile(_tar_info(f"acme-7/acme/kit/{path}", len(content)), io.BytesIO(content))
        info = _tar_info(name, 0)
        for attribute, value in attributes.items():
            setattr(info, attribute, value)
        archive.addfile(info, io.BytesIO(b"x" * info.size))
    return sdist


def _tar_info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    return info


def wheel_with(directory: Path, name: str, mode: int = 0) -> Path:
    """Return a wheel with a kit, and with one more member."""
    wheel = as_wheel(directory)
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(info, "/etc/passwd")
    return wheel


@pytest.mark.parametrize("path", ["../out", "a/../../out", "a\\..\\out", "a\n", "\u202e"])
def test_a_path_that_leads_out_of_the_kit_is_refused(tmp_path: Path, path: str) -> None:
    sources = [
        wheel_with(tmp_path, f"acme/kit/{path}"),
        tar_with(tmp_path, f"acme-7/acme/kit/{path}"),
    ]

    for source in sources:
        with pytest.raises(NoUsableKit, match="is not a path inside the kit"):
            read_kit(source)


def test_an_absolute_path_is_refused(tmp_path: Path) -> None:
    """In the archive of a folder of a kit, the paths begin with nothing, so one can be absolute."""
    wheel = tmp_path / "kit.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("REVISION", "7")
        archive.writestr("/etc/out", "x")

    with pytest.raises(NoUsableKit, match="'/etc/out' is not a path inside the kit"):
        read_kit(wheel)


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE],
    ids=["symbolic link", "hard link", "FIFO", "device"],
)
def test_only_plain_files_are_read_from_an_sdist(tmp_path: Path, kind: bytes) -> None:
    sdist = tar_with(tmp_path, "acme-7/acme/kit/odd", type=kind, linkname="/etc/passwd")

    with pytest.raises(NoUsableKit, match="'odd' is not a plain file"):
        read_kit(sdist)


def test_a_link_in_a_wheel_is_refused(tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path, "acme/kit/link", mode=0o120777)

    with pytest.raises(NoUsableKit, match="'link' is not a plain file"):
        read_kit(wheel)


@pytest.mark.parametrize("create_source", [as_checkout, as_plain_folder])
@pytest.mark.parametrize("target", ["/etc/passwd", "/nowhere", "app.py"])
def test_a_link_in_a_folder_is_refused(
    tmp_path: Path,
    create_source: Callable[[Path], Path],
    target: str,
) -> None:
    source = create_source(tmp_path)
    log = source / "acme" / "kit" / "commands" / "log.py"
    log.unlink()
    log.symlink_to(target)

    with pytest.raises(NoUsableKit, match=r"'commands/log.py' is not a plain file"):
        read_kit(source)


def test_what_is_not_in_the_kit_may_be_a_link(tmp_path: Path) -> None:
    source = as_plain_folder(tmp_path)
    (source / "link").symlink_to("/etc/passwd")

    assert read_kit(source) == _KIT


def test_a_kit_that_is_too_large_is_not_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size_of_kit = sum(len(content) for content in _KIT.values())
    monkeypatch.setattr(kit_source, "MAX_BYTES", size_of_kit + 1000)

    largest = tar_with(tmp_path, "acme-7/acme/kit/large", size=1000)
    assert read_kit(largest)["large"] == b"x" * 1000

    too_large = tar_with(tmp_path, "acme-7/acme/kit/large", size=1001)
    with pytest.raises(NoUsableKit, match="its kit has more than"):
        read_kit(too_large)


def test_half_an_sdist_is_refused(tmp_path: Path) -> None:
    sdist = as_sdist(tmp_path)
    sdist.write_bytes(sdist.read_bytes()[: sdist.stat().st_size // 2])

    with pytest.raises(NoUsableKit, match="cannot be read"):
        read_kit(sdist)


def test_a_wheel_with_changed_bytes_is_refused(tmp_path: Path) -> None:
    wheel = as_wheel(tmp_path)
    wheel.write_bytes(wheel.read_bytes().replace(b"app.pyapp", b"app.pyAPP"))

    with pytest.raises(NoUsableKit, match="cannot be read: Bad CRC-32"):
        read_kit(wheel)


def wheel_with_wrong_flag(directory: Path) -> Path:
    """Return a wheel that claims to be encrypted."""
    wheel = as_wheel(directory)
    entry_start = b"PK\x01\x02"
    content = bytearray(wheel.read_bytes())
    offset = content.find(entry_start)
    while offset != -1:
        content[offset + 8] |= 1
        offset = content.find(entry_start, offset + 1)
    wheel.write_bytes(content)
    return wheel


def compressed_wheel_with_changed_bytes(directory: Path) -> Path:
    """Return a wheel whose compressed data is none."""
    wheel = directory / "a.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("acme/kit/REVISION", b"7\n" * 100)
    name = b"acme/kit/REVISION"
    before, _, after = wheel.read_bytes().partition(name)
    wheel.write_bytes(before + name + b"\xff\xff" + after[2:])
    return wheel


def sdist_with_changed_bytes(directory: Path) -> Path:
    """Return an sdist that was compressed with xz, and that is wrong near its end."""
    sdist = directory / "a.tar.xz"
    with tarfile.open(sdist, "w:xz") as archive:
        content = os.urandom(100_000)
        archive.addfile(_tar_info("acme/kit/REVISION", len(content)), io.BytesIO(content))
    damaged = bytearray(sdist.read_bytes())
    # Random bytes cannot be compressed. So xz copies them in chunks, and a 0xFF begins no chunk.
    damaged[70_000:75_000] = b"\xff" * 5_000
    sdist.write_bytes(damaged)
    return sdist


_DAMAGED = [
    wheel_with_wrong_flag,
    compressed_wheel_with_changed_bytes,
    sdist_with_changed_bytes,
]


@pytest.mark.parametrize("create_source", _DAMAGED, ids=lambda function: function.__name__)
def test_a_damaged_archive_is_refused_whatever_error_reading_it_raises(
    tmp_path: Path,
    create_source: Callable[[Path], Path],
) -> None:
    source = create_source(tmp_path)

    with pytest.raises(NoUsableKit, match="cannot be read"):
        read_kit(source)


def test_a_file_that_is_also_a_folder_is_refused(tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path, "acme/kit/app.py/more.py")

    with pytest.raises(NoUsableKit, match=r"'app.py' is a file and also a folder"):
        read_kit(wheel)
