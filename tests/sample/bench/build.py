"""`tool build` beside other builders: nothing to do for 1,000 targets, and running 1,000 trivial ones."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PLAIN = """
import os, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

def one(number):
    os.mkdir(str(number))
    subprocess.run(["touch", "x"], cwd=str(number), check=True)

with ThreadPoolExecutor(int(sys.argv[2])) as pool:
    list(pool.map(one, range(int(sys.argv[1]))))
"""
"""The same commands, each in a directory of its own, and nothing else."""
TARGETS, DVC_TARGETS, ROUNDS = 1000, 300, 5
_SETTLED_SECONDS = 2.5
"""A file that was changed within two seconds is read again by ours, so nobody is measured right after building."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-build-") as scratch:
        others = _install(Path(scratch, "venv"), "doit", "snakemake", "dvc", "ninja")
        no_op(Path(scratch), others)
        cold(Path(scratch))


def no_op(scratch: Path, others: Path) -> None:
    print(f"nothing to do for {TARGETS} targets, median of {ROUNDS}")
    rows = {
        "tool build": (_workspace(scratch / "ours"), [_tool(), "build", "-q"]),
        "doit": (_doit(scratch / "doit"), [str(others / "doit"), "-v0"]),
        "make": (_make(scratch / "make"), ["make", "-s"]),
        "ninja": (_ninja(scratch / "ninja"), [str(others / "ninja"), "--quiet"]),
        "snakemake": (_snakemake(scratch / "snakemake"), [str(others / "snakemake"), "-c2", "-q", "all"]),
        f"dvc repro ({DVC_TARGETS})": (_dvc(scratch / "dvc", others), [str(others / "dvc"), "repro", "-q"]),
    }
    environ = {**_environ(scratch), "PATH": f"{others}:{os.environ['PATH']}"}
    taken: dict[str, list[float]] = {}
    for name, (directory, command) in rows.items():
        if not shutil.which(command[0], path=environ["PATH"]):
            continue
        rounds = ROUNDS if "dvc" not in name else 2
        _run(command, directory, environ)
        time.sleep(_SETTLED_SECONDS)
        _run(command, directory, environ)
        taken[name] = [_time(lambda c=command, d=directory: _run(c, d, environ)) for _ in range(rounds)]  # type: ignore[misc]
    ours = statistics.median(taken["tool build"])
    for name, times in taken.items():
        print(f"  {name:<18} {statistics.median(times) * 1000:8.0f} ms {statistics.median(times) / ours:7.2f} x ours")
    print()


def cold(scratch: Path) -> None:
    """Whole commands: one by one, and two at a time beside the leanest loop there is and beside the shell's own."""
    environ = _environ(scratch)
    print(f"building {TARGETS} trivial targets, median of {ROUNDS}")
    for workers in (1, 2):
        rows = {
            "tool build": [_tool(), "build", "-q", "-j", str(workers)],
            "Python, nothing else": [sys.executable, "-c", PLAIN, str(TARGETS), str(workers)],
            "xargs": ["sh", "-c", f"seq {TARGETS} | xargs -P{workers} -n1 sh -c 'mkdir $0 && cd $0 && exec touch x'"],
        }
        taken: dict[str, list[float]] = {name: [] for name in rows}
        for turn in range(ROUNDS):
            for place, (name, command) in enumerate(rows.items()):
                directory = _workspace(scratch / f"cold-{workers}-{turn}-{place}")
                taken[name].append(_time(lambda c=command, d=directory: _run(c, d, environ)))  # type: ignore[misc]
        ours = statistics.median(taken["tool build"])
        for name, times in taken.items():
            other = statistics.median(times)
            print(f"    {name:<22} {other * 1000:6.0f} ms, ours takes {ours / other:5.2f} times as long")
    print()


def _workspace(directory: Path) -> Path:
    text = "".join(f'[target.t{n}]\nrun = ["touch", "x"]\noutputs = ["x"]\n' for n in range(TARGETS))
    return _directory(directory, {"tool.toml": text})


def _doit(directory: Path) -> Path:
    text = (
        "def task_t():\n"
        f"    for n in range({TARGETS}):\n"
        "        yield {'name': str(n), 'actions': [f'touch t{n}'], 'targets': [f't{n}'], 'file_dep': ['dodo.py']}\n"
    )
    return _directory(directory, {"dodo.py": text})


def _make(directory: Path) -> Path:
    names = " ".join(f"t{n}" for n in range(TARGETS))
    return _directory(directory, {"Makefile": f"all: {names}\nt%: Makefile\n\ttouch $@\n"})


def _ninja(directory: Path) -> Path:
    rules = "".join(f"build t{n}: touch build.ninja\n" for n in range(TARGETS))
    return _directory(directory, {"build.ninja": f"rule touch\n  command = touch $out\n{rules}"})


def _snakemake(directory: Path) -> Path:
    text = (
        f"rule all:\n    input: [f't{{n}}' for n in range({TARGETS})]\n"
        "rule touch:\n    output: 't{n,[0-9]+}'\n    shell: 'touch {output}'\n"
    )
    return _directory(directory, {"Snakefile": text})


def _dvc(directory: Path, others: Path) -> Path:
    stages = "".join(f"  t{n}:\n    cmd: touch t{n}\n    outs: [t{n}]\n" for n in range(DVC_TARGETS))
    made = _directory(directory, {"dvc.yaml": f"stages:\n{stages}"})
    _run([str(others / "dvc"), "init", "--no-scm", "-q"], made, _environ(directory))
    return made


def _directory(directory: Path, files: dict[str, str]) -> Path:
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / name).write_text(text)
    return directory


def _install(venv: Path, *packages: str) -> Path:
    """Into an environment of their own, which goes with the bench."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([str(venv / "bin" / "pip"), "install", "-q", *packages], check=True, stderr=subprocess.DEVNULL)
    return venv / "bin"


def _tool() -> str:
    return str(Path(sys.executable).with_name("tool"))


def _environ(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "HOME": str(home), "XDG_STATE_HOME": str(home), "TMPDIR": str(home)}


def _run(command: list[str], directory: Path, environ: dict[str, str]) -> None:
    subprocess.run(
        command, cwd=directory, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _time(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
