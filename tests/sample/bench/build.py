"""Compare `tool build` with other builders: nothing to do for 1,000 targets, and building them.

Everything is measured in one run, as whole commands. The other builders are installed into a
temporary environment.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TARGETS = 1000
DVC_TARGETS = 300
"""dvc takes many times as long as the others."""

ROUNDS = 7
MAX_SHARE_OF_DOIT = 0.8

_SETTLED_SECONDS = 2.5
"""The tool reads a file again if it was changed within two seconds. So wait after building."""

_PLAIN_LOOP = """
import os, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

def build(number):
    os.mkdir(str(number))
    subprocess.run(["touch", "x"], cwd=str(number), check=True)

with ThreadPoolExecutor(int(sys.argv[2])) as pool:
    list(pool.map(build, range(int(sys.argv[1]))))
"""
"""The same commands, each in a directory of its own, and nothing else."""

_DODO_FILE = f"""
def task_t():
    for n in range({TARGETS}):
        yield {{
            'name': str(n),
            'actions': [f'touch t{{n}}'],
            'targets': [f't{{n}}'],
            'file_dep': ['dodo.py'],
        }}
"""

_SNAKEFILE = f"""
rule all:
    input: [f't{{n}}' for n in range({TARGETS})]
rule touch:
    output: 't{{n,[0-9]+}}'
    shell: 'touch {{output}}'
"""


@dataclass(frozen=True)
class Builder:
    """A program that builds, in a directory with files for it."""

    name: str
    directory: Path
    command: Sequence[str]
    rounds: int = ROUNDS


def main() -> int:
    """Run both comparisons. Return 1 if the tool is slower than it is meant to be."""
    with tempfile.TemporaryDirectory(prefix="bench-build-") as name:
        scratch = Path(name)
        programs = install(scratch / "venv", "doit", "snakemake", "dvc", "ninja")
        is_fast_enough = compare_with_nothing_to_do(scratch, programs)
        for jobs in (1, 2):
            compare_building(scratch, jobs)
    return 0 if is_fast_enough else 1


def compare_with_nothing_to_do(scratch: Path, programs: Path) -> bool:
    """Return whether the tool takes at most 0.8 of the time of doit."""
    environ = {**environ_of(scratch), "PATH": f"{programs}:{os.environ['PATH']}"}
    builders = []
    for builder in all_builders(scratch, programs, environ):
        if shutil.which(builder.command[0], path=environ["PATH"]) is not None:
            builders.append(builder)
    for builder in builders:
        run(builder.command, builder.directory, environ)
    time.sleep(_SETTLED_SECONDS)
    for builder in builders:
        run(builder.command, builder.directory, environ)
    medians = median_seconds(builders, environ)
    print(f"nothing to do for {TARGETS} targets, median of {ROUNDS}")
    for name, median in medians.items():
        share = medians["tool build"] / median
        print(f"  {name:<18} {median * 1000:8.0f} ms, tool build takes {share:5.2f} of this")
    share_of_doit = medians["tool build"] / medians["doit"]
    is_fast_enough = share_of_doit <= MAX_SHARE_OF_DOIT
    verdict = "ok  " if is_fast_enough else "MISS"
    print(f"  {verdict} at most {MAX_SHARE_OF_DOIT} of the time of doit: {share_of_doit:.2f}")
    print()
    return is_fast_enough


def median_seconds(builders: Sequence[Builder], environ: Mapping[str, str]) -> dict[str, float]:
    """Run the builders in turns, and return how long each takes, by its name."""
    # In turns, so that other work on this machine slows all of them down.
    seconds: dict[str, list[float]] = {builder.name: [] for builder in builders}
    for number in range(ROUNDS):
        for builder in builders:
            if number < builder.rounds:
                seconds[builder.name].append(seconds_of(builder, environ))
    return {name: statistics.median(times) for name, times in seconds.items()}


def all_builders(scratch: Path, programs: Path, environ: Mapping[str, str]) -> list[Builder]:
    """Return the builders, each in a new directory in which nothing is built yet."""
    tool_directory = workspace(scratch / "tool")
    doit = create(scratch / "doit", {"dodo.py": _DODO_FILE})
    snakemake = create(scratch / "snakemake", {"Snakefile": _SNAKEFILE})
    make = create(scratch / "make", {"Makefile": makefile()})
    ninja = create(scratch / "ninja", {"build.ninja": ninja_file()})
    dvc = create(scratch / "dvc", {"dvc.yaml": dvc_file()})
    run([str(programs / "dvc"), "init", "--no-scm", "-q"], dvc, environ)
    dvc_command = [str(programs / "dvc"), "repro", "-q"]
    snakemake_command = [str(programs / "snakemake"), "-c2", "-q", "all"]
    return [
        Builder("tool build", tool_directory, [tool(), "build", "-q"]),
        Builder("doit", doit, [str(programs / "doit"), "-v0"]),
        Builder("make", make, ["make", "-s"]),
        Builder("ninja", ninja, [str(programs / "ninja"), "--quiet"]),
        Builder("snakemake", snakemake, snakemake_command),
        Builder(f"dvc repro ({DVC_TARGETS})", dvc, dvc_command, rounds=2),
    ]


def compare_building(scratch: Path, jobs: int) -> None:
    """Print how long the tool takes, beside the shortest loops that run the same commands."""
    script = "mkdir $0 && cd $0 && exec touch x"
    xargs = f"seq {TARGETS} | xargs -P{jobs} -n1 sh -c '{script}'"
    commands = {
        "tool build": [tool(), "build", "-q", "-j", str(jobs)],
        "Python, nothing else": [sys.executable, "-c", _PLAIN_LOOP, str(TARGETS), str(jobs)],
        "xargs": ["sh", "-c", xargs],
    }
    environ = environ_of(scratch)
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS):
        for name, command in commands.items():
            directory = workspace(scratch / f"building-{jobs}-{number}-{name.split()[0]}")
            seconds[name].append(seconds_of(Builder(name, directory, command), environ))

    tool_median = statistics.median(seconds["tool build"])
    print(f"building {TARGETS} trivial targets, {jobs} at the same time, median of {ROUNDS}")
    for name, times in seconds.items():
        median = statistics.median(times)
        times_as_long = tool_median / median
        print(
            f"  {name:<22} {median * 1000:6.0f} ms, tool build takes {times_as_long:5.2f} of this"
        )
    print()


# The files of the builders


def workspace(directory: Path) -> Path:
    """Create a workspace with many targets that need nothing."""
    targets = []
    for number in range(TARGETS):
        targets.append(f'[target.t{number}]\nrun = ["touch", "x"]\noutputs = ["x"]\n')
    return create(directory, {"tool.toml": "".join(targets)})


def makefile() -> str:
    names = " ".join(f"t{number}" for number in range(TARGETS))
    return f"all: {names}\nt%: Makefile\n\ttouch $@\n"


def ninja_file() -> str:
    targets = [f"build t{number}: touch build.ninja\n" for number in range(TARGETS)]
    return f"rule touch\n  command = touch $out\n{''.join(targets)}"


def dvc_file() -> str:
    stages = []
    for number in range(DVC_TARGETS):
        stages.append(f"  t{number}:\n    cmd: touch t{number}\n    outs: [t{number}]\n")
    return f"stages:\n{''.join(stages)}"


def create(directory: Path, contents: Mapping[str, str]) -> Path:
    """Create a directory with these files, and return it."""
    directory.mkdir(parents=True)
    for name, text in contents.items():
        (directory / name).write_text(text)
    return directory


# Commands


def install(venv: Path, *packages: str) -> Path:
    """Install packages into a new environment, and return the directory of its programs."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "pip"), "install", "-q", *packages]
    subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
    return venv / "bin"


def tool() -> str:
    return str(Path(sys.executable).with_name("tool"))


def environ_of(home: Path) -> dict[str, str]:
    """Return the environment of all commands. Python may write its bytecode."""
    environ = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home), "TMPDIR": str(home)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return environ


def run(command: Sequence[str], directory: Path, environ: Mapping[str, str]) -> None:
    subprocess.run(
        command,
        cwd=directory,
        env=environ,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def seconds_of(builder: Builder, environ: Mapping[str, str]) -> float:
    started_at = time.perf_counter()
    run(builder.command, builder.directory, environ)
    return time.perf_counter() - started_at


if __name__ == "__main__":
    sys.exit(main())
