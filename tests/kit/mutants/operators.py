"""What the automatic mutator changes: one class for each kind of change, which a report names.

An operator looks at one node of the syntax tree and yields what may stand there instead. Texts, docstrings, types,
imports, decorators and assertions stay as they are: a test says nothing about them, or a type checker does.
"""

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType

from .source import Mutant, Nodes, Place, Scope, Source, dump

_CLEAN_UP = ("close", "flush", "fsync", "release", "unlink", "unlock")
_LEFT_ALONE = (ast.Import, ast.ImportFrom, ast.Assert, ast.Global, ast.Nonlocal, ast.Pass)
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


@dataclass(frozen=True)
class Candidate:
    """A change that can be made into a mutant."""

    operator: str
    place: Place
    replacement: Nodes

    def mutant(self, source: Source) -> Mutant | None:
        """Return the mutant, or None if the compiled code is the same as before."""
        mutant = source.mutant(self.operator, self.place, self.replacement)
        try:
            before = compile(source.text, source.file, "exec")
            after = compile(mutant.content, source.file, "exec")
        except SyntaxError:  # such as `continue` outside of a loop
            return None
        return None if _is_same_code(before, after) else mutant


class ExpressionOperator:
    """A change of one expression."""

    name: str

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        raise NotImplementedError


class DropOperand(ExpressionOperator):
    """`a and b` becomes `a` or `b`; `now + pause` becomes `now` or `pause`; `min(a, b)` becomes `a` or `b`."""

    name = "drop operand"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.BoolOp):
            for number in range(len(node.values)):
                rest = node.values[:number] + node.values[number + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
        if isinstance(node, ast.BinOp) and not _is_text(node.left) and not _is_text(node.right):
            yield node.left
            yield node.right
        if _is_call_of(node, "min", "max") and isinstance(node, ast.Call) and not node.keywords:
            yield from (argument for argument in node.args if not isinstance(argument, ast.Starred))


class MoveBound(ExpressionOperator):
    """`a < b` becomes `a <= b`, and the other way round."""

    name = "move bound"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if not isinstance(node, ast.Compare):
            return
        for number, operator in enumerate(node.ops):
            opposite = _OPPOSITE.get(type(operator))
            if opposite is not None:
                operators = [*node.ops]
                operators[number] = opposite()
                yield ast.Compare(left=node.left, ops=operators, comparators=node.comparators)


class ChangeNumber(ExpressionOperator):
    """`3` becomes `4`."""

    name = "change number"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield ast.Constant(value=node.value + 1)  # type: ignore[operator]  # it is a number


class FlipFlag(ExpressionOperator):
    """`True` becomes `False`, and the other way round."""

    name = "flip flag"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield ast.Constant(value=not node.value)


class DropMember(ExpressionOperator):
    """`(a, b)` becomes `(a,)` or `(b,)`; so do lists, sets and dictionaries."""

    name = "drop member"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Load):
            for number in range(len(node.elts)):
                rest = node.elts[:number] + node.elts[number + 1 :]
                yield type(node)(elts=rest, ctx=node.ctx)
        if isinstance(node, ast.Set) and len(node.elts) > 1:
            for number in range(len(node.elts)):
                yield ast.Set(elts=node.elts[:number] + node.elts[number + 1 :])
        if isinstance(node, ast.Dict):
            for number in range(len(node.keys)):
                keys = node.keys[:number] + node.keys[number + 1 :]
                values = node.values[:number] + node.values[number + 1 :]
                yield ast.Dict(keys=keys, values=values)


class DropArgument(ExpressionOperator):
    """`f(a, limit=3)` becomes `f(a)`."""

    name = "drop argument"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.Call):
            for number, keyword in enumerate(node.keywords):
                if not _is_text(keyword.value):
                    rest = node.keywords[:number] + node.keywords[number + 1 :]
                    yield ast.Call(func=node.func, args=node.args, keywords=rest)


class NegateCondition(ExpressionOperator):
    """What `if`, `while`, `and` and `or` ask becomes its opposite."""

    name = "negate condition"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.BoolOp):
            for number, value in enumerate(node.values):
                values = [*node.values]
                values[number] = _negated(value)
                yield ast.BoolOp(op=node.op, values=values)
        elif isinstance(node, ast.IfExp):
            yield ast.IfExp(test=_negated(node.test), body=node.body, orelse=node.orelse)


class DropCondition(ExpressionOperator):
    """`a if b else c` becomes `a` or `c`."""

    name = "drop condition"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.IfExp):
            yield node.body
            yield node.orelse


EXPRESSION_OPERATORS: tuple[ExpressionOperator, ...] = (
    DropOperand(),
    MoveBound(),
    ChangeNumber(),
    FlipFlag(),
    DropMember(),
    DropArgument(),
    NegateCondition(),
    DropCondition(),
)


def candidates(source: Source) -> list[Candidate]:
    """Return every change that the operators make of this file, in the order of the file."""
    found: list[Candidate] = []
    for scope in source.scopes:
        for block in _blocks(scope):
            found += _changed_statements(scope, block)
            for statement in block:
                for expression in _expressions(statement):
                    found += _changed_expression(scope, expression)
    return found


def _changed_expression(scope: Scope, expression: ast.expr) -> Iterator[Candidate]:
    for operator in EXPRESSION_OPERATORS:
        for replacement in operator.replacements(expression):
            if dump(replacement) != dump(expression):
                yield Candidate(operator.name, Place(scope.name, [expression]), [replacement])


def _changed_statements(scope: Scope, block: Sequence[ast.stmt]) -> Iterator[Candidate]:
    for number, statement in enumerate(block):
        place = Place(scope.name, [statement])
        if isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Await)):
            name = "drop call" if _is_clean_up(statement.value) else "remove statement"
            yield Candidate(name, place, [ast.Pass()])
        elif _can_be_removed(statement, is_last=number == len(block) - 1):
            yield Candidate("remove statement", place, [ast.Pass()])
        yield from _changed_tests(scope, statement)
    for before, after in pairwise(block):
        if _can_be_swapped(before, after):
            yield Candidate("swap statements", Place(scope.name, [before, after]), [after, before])


def _changed_tests(scope: Scope, statement: ast.stmt) -> Iterator[Candidate]:
    """Yield the conditions of `if` and `while` and of comprehensions, and the contexts of `with`."""
    if isinstance(statement, (ast.If, ast.While)) and not isinstance(statement.test, ast.Constant):
        place = Place(scope.name, [statement.test])
        yield Candidate("negate condition", place, [_negated(statement.test)])
        yield Candidate("drop condition", place, [ast.Constant(value=False)])
        if isinstance(statement, ast.If):  # `while True` would only ever be a time-out
            yield Candidate("drop condition", place, [ast.Constant(value=True)])
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        nothing = ast.parse('__import__("contextlib").nullcontext()', mode="eval").body
        for item in statement.items:
            if item.optional_vars is None:
                yield Candidate("drop context", Place(scope.name, [item.context_expr]), [nothing])
    for expression in _expressions(statement):
        if isinstance(expression, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for generator in expression.generators:
                for test in generator.ifs:
                    place = Place(scope.name, [test])
                    yield Candidate("negate condition", place, [_negated(test)])
                    yield Candidate("drop condition", place, [ast.Constant(value=True)])


def _blocks(scope: Scope) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that may be changed, from the outside to the inside."""
    waiting = [list(scope.statements)]
    while waiting:
        block = waiting.pop(0)
        kept = [statement for statement in block if not _is_left_alone(statement)]
        if kept:
            yield kept
        for statement in kept:
            for node in [statement, *getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
                for name in ("body", "orelse", "finalbody"):
                    waiting.append(getattr(node, name, []))


def _is_left_alone(statement: ast.stmt) -> bool:
    if isinstance(statement, _LEFT_ALONE):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True  # a docstring
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in statement.targets)
    if isinstance(statement, ast.If):
        return "TYPE_CHECKING" in ast.unparse(statement.test) or "__name__" in ast.unparse(statement.test)
    return False


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of the statement, but no types, decorators, texts, and nothing of inner statements."""
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "returns", "decorator_list", "target", "targets", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.stmt):
                yield from _expressions_in(node)


def _expressions_in(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.expr):
        yield node
    if isinstance(node, (ast.JoinedStr, ast.arg)):
        return  # text; or a parameter, of which only the type could be changed
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        yield from _expressions_in(node.value)  # a type such as dict[str, int]
        return
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            yield from _expressions_in(child)


def _can_be_removed(statement: ast.stmt, *, is_last: bool) -> bool:
    """Tell whether the code still makes sense without the statement: a name that is gone is only ever an exception."""
    if isinstance(statement, (ast.Raise, ast.AugAssign, ast.Delete, ast.Break, ast.Continue)):
        return True
    if isinstance(statement, ast.Return):
        return statement.value is None or not is_last
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in statement.targets)
    return False


def _can_be_swapped(before: ast.stmt, after: ast.stmt) -> bool:
    """Tell whether both are steps, and the second needs no name that the first one makes."""
    steps = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)
    if not isinstance(before, steps) or not isinstance(after, steps):
        return False
    if isinstance(before, ast.Assign) and isinstance(after, ast.Assign):
        return False  # nearly always two values that have nothing to do with each other
    made = {node.id for node in ast.walk(before) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    needed = {node.id for node in ast.walk(after) if isinstance(node, ast.Name)}
    return not made & needed


def _is_clean_up(node: ast.expr) -> bool:
    call = node.value if isinstance(node, ast.Await) else node
    if not isinstance(call, ast.Call):
        return False
    name = ast.unparse(call.func).rpartition(".")[2]
    return any(word in name for word in _CLEAN_UP)


def _is_call_of(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(op=ast.Not(), operand=copy.deepcopy(test))


def _is_same_code(one: object, other: object) -> bool:
    """Compare compiled code without its line numbers."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return type(one) is type(other) and one == other
    for name in ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_exceptiontable"):
        if getattr(one, name) != getattr(other, name):
            return False
    ours, theirs = one.co_consts, other.co_consts
    return len(ours) == len(theirs) and all(map(_is_same_code, ours, theirs))
