"""Print how dense the code of each folder is: `make style`.

The figures stand next to those of projects that are known to read well. They only hint at dense
code: read it to decide. The command fails only if some code breaks one of these rules:

* The docstring of a function begins with a verb in the imperative (ruff's D401).
* A line has at most 100 characters.
* No conditional expression contains another one.
* No function has a complexity over 10.

With a directory as its argument, the command prints only the figures of the code in there.
"""

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_LINE_CHARACTERS = 100
MAX_COMPLEXITY = 10

_NO_CODE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_DecisionStatement = (
    ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.match_case
)


@dataclass
class Counts:
    """The counts of the files of one folder."""

    files: list[Path] = field(default_factory=list)
    code_lines: int = 0
    tokens: int = 0
    comments: int = 0
    statement_decisions: int = 0
    expression_decisions: int = 0
    docstrings: int = 0


@dataclass(frozen=True)
class Figures:
    """One row of the report. The three shares are percentages."""

    tokens_per_line: float
    decisions_in_expressions: float
    fragment_docstrings: float
    comments_per_line: float


ANCHORS = {
    "trio 0.35": Figures(6.1, 16, 21, 27),
    "pre-commit 4.7": Figures(6.2, 30, 26, 7),
    "svcs 26.2": Figures(5.9, 21, 32, 5),
    "huey 3.5": Figures(7.5, 28, 17, 4),
    "pipx 1.18": Figures(6.2, 42, 18, 5),
    "click 8.5": Figures(6.7, 29, 39, 12),
    "attrs 26.1": Figures(5.1, 36, 23, 8),
    "httpx 0.28": Figures(6.2, 34, 22, 8),
    "sqlite-utils 4.2": Figures(5.7, 39, 5, 5),
    "flask 3.1": Figures(6.7, 21, 33, 18),
}
"""The figures of other projects.

They were measured by this script in November 2026, on the wheels, without tests.
"""


@dataclass(frozen=True)
class Violation:
    """A place that breaks one of the rules."""

    path: Path
    line: int
    problem: str


def count(file: Path, counts: Counts) -> None:
    """Add what is in one Python file to `counts`."""
    source = file.read_text()
    tree = ast.parse(source)
    counts.files.append(file)
    docstring_lines: set[int] = set()
    for docstring in _docstrings(tree):
        assert docstring.end_lineno is not None
        docstring_lines.update(range(docstring.lineno, docstring.end_lineno + 1))
    lines_with_code = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            counts.comments += 1
        if token.type in _NO_CODE or token.start[0] in docstring_lines:
            continue
        counts.tokens += 1
        lines_with_code.add(token.start[0])
    counts.code_lines += len(lines_with_code)
    for node in ast.walk(tree):
        counts.statement_decisions += isinstance(node, _DecisionStatement)
        counts.expression_decisions += _expression_decisions(node)
        if isinstance(node, _Function) and ast.get_docstring(node) is not None:
            counts.docstrings += 1


def figures(counts: Counts) -> Figures:
    """Turn counts into the figures of one row."""
    decisions = counts.statement_decisions + counts.expression_decisions
    fragments = len(fragment_docstrings(counts.files))
    return Figures(
        tokens_per_line=counts.tokens / max(counts.code_lines, 1),
        decisions_in_expressions=100 * counts.expression_decisions / max(decisions, 1),
        fragment_docstrings=100 * fragments / max(counts.docstrings, 1),
        comments_per_line=100 * counts.comments / max(counts.code_lines, 1),
    )


def fragment_docstrings(files: list[Path]) -> list[Violation]:
    """Return the docstrings of functions that do not begin with a verb in the imperative."""
    ruff = [
        str(Path(sys.prefix, "bin", "ruff")),
        *("check", "--isolated", "--select", "D401", "--output-format", "json"),
    ]
    paths = [str(file) for file in files]
    completed = subprocess.run([*ruff, *paths], capture_output=True, text=True, check=False)
    violations = []
    for found in json.loads(completed.stdout):
        path = Path(found["filename"])
        line = found["location"]["row"]
        violations.append(Violation(path, line, "begin the docstring with a verb: Return, Raise …"))
    return violations


def rule_violations(file: Path) -> list[Violation]:
    """Return where the file breaks one of the rules, except the rule about docstrings."""
    source = file.read_text()
    violations = []
    for number, line in enumerate(source.splitlines(), 1):
        if len(line) > MAX_LINE_CHARACTERS:
            problem = f"{len(line)} characters, at most {MAX_LINE_CHARACTERS}"
            violations.append(Violation(file, number, problem))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.IfExp) and _contains_another_conditional(node):
            problem = "a conditional expression contains another one"
            violations.append(Violation(file, node.lineno, problem))
        if isinstance(node, _Function):
            reached = complexity(node)
            if reached > MAX_COMPLEXITY:
                problem = f"{node.name} has complexity {reached}, at most {MAX_COMPLEXITY}"
                violations.append(Violation(file, node.lineno, problem))
    return violations


def complexity(function: _Function) -> int:
    """Return the cyclomatic complexity of a function, with the decisions inside its expressions.

    Functions inside the function do not count: they are judged on their own.
    """
    total = 1
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Function):
            continue
        total += isinstance(node, _DecisionStatement)
        total += _expression_decisions(node)
        waiting.extend(ast.iter_child_nodes(node))
    return total


def python_files(directory: Path) -> list[Path]:
    """Return the Python files directly in a directory."""
    return sorted(directory.glob("*.py"))


def project_folders() -> dict[str, list[Path]]:
    """Return the Python files of each folder of the project, by the folder's path from the root."""
    folders = {}
    for top in ("sampletool", "tests", "docs"):
        for directory in sorted([ROOT / top, *_directories_below(ROOT / top)]):
            files = python_files(directory)
            if any(file.stat().st_size for file in files):
                folders[directory.relative_to(ROOT).as_posix()] = files
    return folders


def find_violations() -> list[Violation]:
    """Return all violations of the rules in the project."""
    files = []
    for files_of_folder in project_folders().values():
        files += files_of_folder
    violations = fragment_docstrings(files)
    for file in files:
        violations += rule_violations(file)
    return violations


def _directories_below(top: Path) -> Iterator[Path]:
    for path in top.rglob("*"):
        if path.is_dir() and path.name != "__pycache__":
            yield path


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    """Yield each statement that is only a text: docstrings, and the texts below attributes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            yield node


def _expression_decisions(node: ast.AST) -> int:
    """Return how many decisions this node itself adds inside an expression."""
    if isinstance(node, ast.IfExp):
        return 1
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return 0


def _contains_another_conditional(conditional: ast.IfExp) -> bool:
    inside = (node for node in ast.walk(conditional) if node is not conditional)
    return any(isinstance(node, ast.IfExp) for node in inside)


def _row(name: str, row: Figures) -> str:
    return (
        f"{name:64} {row.tokens_per_line:10.1f} {row.decisions_in_expressions:12.0f}%"
        f" {row.fragment_docstrings:11.0f}% {row.comments_per_line:9.0f}%"
    )


def _header() -> str:
    first = f"{'':64} {'tokens':>10} {'decisions in':>13} {'docstrings':>12} {'comments':>10}"
    second = f"{'':64} {'per line':>10} {'expressions':>13} {'not verbs':>12} {'per line':>10}"
    return f"{first}\n{second}"


def main(arguments: list[str]) -> int:
    """Print the report, and return the exit code: 1 if some code breaks a rule."""
    print(_header())
    if arguments:
        directory = arguments[0]
        files = sorted(Path(directory).rglob("*.py"))
        print(_row(directory, _figures_of(files)))
        return 0
    _print_figures()
    violations = find_violations()
    for violation in violations:
        print(f"{violation.path.relative_to(ROOT)}:{violation.line}: {violation.problem}")
    if violations:
        return 1
    print("No code breaks the rules.")
    return 0


def _print_figures() -> None:
    """Print the figures of other projects, and those of each folder of this one."""
    for project, row in ANCHORS.items():
        print(_row(project, row))
    print()
    for folder, files in project_folders().items():
        print(_row(folder, _figures_of(files)))


def _figures_of(files: list[Path]) -> Figures:
    counts = Counts()
    for file in files:
        count(file, counts)
    return figures(counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
