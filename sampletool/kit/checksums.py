"""Says whether the kit, its tests and its pages are as they were taken: `python -m acme.kit.checksums`.

They are compared with the file CHECKSUMS, which is there where a project has taken the kit over, not where the kit is
developed: forking writes it, and so does each update.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

_KIT = Path(__file__).parent
LIST = _KIT / "CHECKSUMS"


def folders(package: str) -> tuple[str, ...]:
    """What is taken over as a whole."""
    return "tests/kit/", "docs/kit/", f"{package}/kit/"


def listing(contents: Mapping[str, bytes]) -> str:
    """What CHECKSUMS has in it; `contents` of all files of the kit."""
    return "".join(f"{sha256(content).hexdigest()}  {name}\n" for name, content in sorted(contents.items()))


def of_kit(files: Mapping[str, bytes], package: str) -> dict[str, bytes]:
    """Of the files of a project those of the kit, by names that do not depend on the package's."""
    kit = {path for path in files if path.split("/")[1:2] == ["kit"]} - {f"{package}/kit/CHECKSUMS"}
    return {path.removeprefix(f"{package}/"): files[path] for path in kit}


def contents() -> dict[str, bytes]:
    """Of every file of the kit as it is now."""
    package, top = _KIT.parent.name, _KIT.parents[1]
    files = [file for folder in folders(package) for file in (top / folder).rglob("*") if file.is_file()]
    own = [file for file in files if "__pycache__" not in file.parts]
    return of_kit({file.relative_to(top).as_posix(): file.read_bytes() for file in own}, package)


def refuse_edited() -> None:
    """What was changed, added or deleted since CHECKSUMS was written is named."""
    if LIST.exists() and (lines := {*LIST.read_text().splitlines()} ^ {*listing(contents()).splitlines()}):
        names = sorted({line.split(maxsplit=1)[1] for line in lines})
        raise SystemExit(f"Edited, so that no newer kit can replace it: {', '.join(names)}. Take the change back.")


if __name__ == "__main__":
    refuse_edited()
