"""The operators: the kinds of change that the mutator makes, such as "drop operand".

Each operator looks at one node of the syntax tree and yields what can replace it. A report names
the operator of each mutant. (For all terms, see source.py.)

* An operator that changes an expression is a class below, with the changes in its docstring.
* Operators that change statements are in `_changed_statements` and `_changed_pairs`.
* Operators that change the condition or the context of a statement are in `_changed_conditions`,
  `_changed_contexts` and `_changed_filters`.

Texts, docstrings, types, imports, decorators and assertions stay the same. Tests are not expected
to notice such a change, or a type checker finds it.
"""

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType
from typing import TypeGuard, TypeVar

from .source import Mutant, Nodes, Place, Scope, Source, dump

_Member = TypeVar("_Member")

_CLEAN_UP = ("close", "flush", "fsync", "release", "unlink", "unlock")
"""A call of a function with one of these words in its name has an operator of its own."""

_LEFT_ALONE = (ast.Import, ast.ImportFrom, ast.Assert, ast.Global, ast.Nonlocal, ast.Pass)

_MOVED_BOUNDS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_COMPARED_CODE = (
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_exceptiontable",
)


@dataclass(frozen=True)
class Candidate:
    """A change that an operator makes of one place."""

    operator: str
    place: Place
    replacement: Nodes

    def mutant(self, source: Source) -> Mutant | None:
        """Return the mutant. Return None if it is not Python, or compiles to the same code."""
        mutant = source.mutant(self.operator, self.place, self.replacement)
        try:
            before = compile(source.text, source.file, "exec")
            after = compile(mutant.content, source.file, "exec")
        except SyntaxError:  # such as `continue` outside of a loop
            return None
        if _is_same_code(before, after):
            return None
        return mutant


class ExpressionOperator:
    """An operator that changes one expression."""

    name: str

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        """Yield each expression that can replace the node. Yield nothing for other nodes."""
        raise NotImplementedError


class DropOperand(ExpressionOperator):
    """`a and b` becomes `b` or `a`; `now + pause` becomes `now` or `pause`.

    `min(a, b)` and `max(a, b)` become `a` or `b`.
    """

    name = "drop operand"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.BoolOp):
            yield from _without_one_operand(node)
        if isinstance(node, ast.BinOp) and not _is_text(node.left) and not _is_text(node.right):
            yield node.left
            yield node.right
        if _is_call_of(node, "min", "max") and isinstance(node, ast.Call) and not node.keywords:
            for argument in node.args:
                if not isinstance(argument, ast.Starred):
                    yield argument


def _without_one_operand(node: ast.BoolOp) -> Iterator[ast.expr]:
    """Yield the expression without each of its operands: `b or c` for `a or b or c`."""
    for index in range(len(node.values)):
        operands = _without(node.values, index)
        if len(operands) == 1:
            yield operands[0]
        else:
            yield ast.BoolOp(op=node.op, values=operands)


class MoveBound(ExpressionOperator):
    """`a < b` becomes `a <= b`, and the reverse; `a > b` becomes `a >= b`, and the reverse."""

    name = "move bound"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if not isinstance(node, ast.Compare):
            return
        # One comparison can have several operators: `1 < a < b`. Change one at a time.
        for index, operator in enumerate(node.ops):
            moved_bound = _MOVED_BOUNDS.get(type(operator))
            if moved_bound is not None:
                operators = list(node.ops)
                operators[index] = moved_bound()
                yield ast.Compare(left=node.left, ops=operators, comparators=node.comparators)


class ChangeNumber(ExpressionOperator):
    """`3` becomes `4`."""

    name = "change number"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        # isinstance() would also accept True and False, which are for FlipFlag.
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield ast.Constant(value=node.value + 1)  # type: ignore[operator]  # it is a number


class FlipFlag(ExpressionOperator):
    """`True` becomes `False`, and the reverse."""

    name = "flip flag"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield ast.Constant(value=not node.value)


class DropMember(ExpressionOperator):
    """`(a, b)` becomes `(b,)` or `(a,)`. Lists, sets and dictionaries change in the same way.

    The last member of a set stays: `{}` would be a dictionary.
    """

    name = "drop member"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        # Leave out what is assigned to, such as the tuple on the left of `a, b = pair`.
        if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Load):
            for index in range(len(node.elts)):
                yield type(node)(elts=_without(node.elts, index), ctx=node.ctx)
        if isinstance(node, ast.Set) and len(node.elts) > 1:
            for index in range(len(node.elts)):
                yield ast.Set(elts=_without(node.elts, index))
        if isinstance(node, ast.Dict):
            for index in range(len(node.keys)):
                keys = _without(node.keys, index)
                values = _without(node.values, index)
                yield ast.Dict(keys=keys, values=values)


class DropArgument(ExpressionOperator):
    """`f(a, limit=3)` becomes `f(a)`.

    Positional arguments stay: without them, most calls would only raise TypeError.
    """

    name = "drop argument"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if not isinstance(node, ast.Call):
            return
        for index, keyword in enumerate(node.keywords):
            if not _is_text(keyword.value):
                keywords = _without(node.keywords, index)
                yield ast.Call(func=node.func, args=node.args, keywords=keywords)


class NegateCondition(ExpressionOperator):
    """`a and b` becomes `not a and b` or `a and not b`.

    `x if a else y` becomes `x if not a else y`.
    `_changed_conditions` and `_changed_filters` negate the conditions of statements.
    """

    name = "negate condition"

    def replacements(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.BoolOp):
            for index, operand in enumerate(node.values):
                operands = list(node.values)
                operands[index] = _negated(operand)
                yield ast.BoolOp(op=node.op, values=operands)
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
    """Return every change that the operators make of this file.

    The order is always the same, so that a seed draws the same mutants again.
    """
    found: list[Candidate] = []
    for scope in source.scopes:
        for block in _blocks(scope):
            found += _changed_statements(scope, block)
            found += _changed_pairs(scope, block)
            for statement in block:
                for expression in _expressions(statement):
                    found += _changed_expression(scope, expression)
    return found


def _changed_expression(scope: Scope, expression: ast.expr) -> Iterator[Candidate]:
    for operator in EXPRESSION_OPERATORS:
        for replacement in operator.replacements(expression):
            # A few replacements change nothing: as floats, 1e20 + 1 is 1e20.
            if dump(replacement) != dump(expression):
                yield Candidate(operator.name, Place(scope.name, [expression]), [replacement])


def _changed_statements(scope: Scope, block: Sequence[ast.stmt]) -> Iterator[Candidate]:
    """Yield what can be changed of each statement: remove it, or change its condition or context.

    "Remove" means to replace with `pass`, because a body needs at least one statement.
    """
    for statement in block:
        place = Place(scope.name, [statement])
        if _is_call(statement):
            name = "drop call" if _is_clean_up(statement.value) else "remove statement"
            yield Candidate(name, place, [ast.Pass()])
        elif _can_be_removed(statement, is_last=statement is block[-1]):
            yield Candidate("remove statement", place, [ast.Pass()])
        yield from _changed_conditions(scope, statement)
        yield from _changed_contexts(scope, statement)
        yield from _changed_filters(scope, statement)


def _changed_pairs(scope: Scope, block: Sequence[ast.stmt]) -> Iterator[Candidate]:
    """Yield each two neighbouring statements in the reverse order."""
    for before, after in pairwise(block):
        if _can_be_swapped(before, after):
            place = Place(scope.name, [before, after])
            yield Candidate("swap statements", place, [after, before])


def _changed_conditions(scope: Scope, statement: ast.stmt) -> Iterator[Candidate]:
    """Yield changes of the condition of an `if` or `while`: `not a`, `False`, and `True`."""
    if not isinstance(statement, (ast.If, ast.While)) or isinstance(statement.test, ast.Constant):
        return
    place = Place(scope.name, [statement.test])
    yield Candidate("negate condition", place, [_negated(statement.test)])
    yield Candidate("drop condition", place, [ast.Constant(value=False)])
    # Most loops would never end with `while True`. Tests notice that only by a time-out.
    if isinstance(statement, ast.If):
        yield Candidate("drop condition", place, [ast.Constant(value=True)])


def _changed_contexts(scope: Scope, statement: ast.stmt) -> Iterator[Candidate]:
    """Yield `with nullcontext():` for `with lock:`. A context with `as` stays: its name is used."""
    if not isinstance(statement, (ast.With, ast.AsyncWith)):
        return
    # The file may not import contextlib, so the replacement imports it itself.
    null_context = ast.parse('__import__("contextlib").nullcontext()', mode="eval").body
    for item in statement.items:
        if item.optional_vars is None:
            place = Place(scope.name, [item.context_expr])
            yield Candidate("drop context", place, [null_context])


def _changed_filters(scope: Scope, statement: ast.stmt) -> Iterator[Candidate]:
    """Yield changes of the conditions of comprehensions: `[x for x in a if not x]`."""
    for expression in _expressions(statement):
        if not isinstance(expression, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        for generator in expression.generators:
            for condition in generator.ifs:
                place = Place(scope.name, [condition])
                yield Candidate("negate condition", place, [_negated(condition)])
                yield Candidate("drop condition", place, [ast.Constant(value=True)])


def _blocks(scope: Scope) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that may be changed, from the outside to the inside."""
    waiting = [list(scope.statements)]
    while waiting:
        block = waiting.pop(0)
        changeable = [statement for statement in block if not _is_left_alone(statement)]
        if changeable:
            yield changeable
        for statement in changeable:
            waiting += _inner_blocks(statement)


def _inner_blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the bodies of a statement, with those of its `except` and `case` clauses."""
    handlers = getattr(statement, "handlers", [])
    cases = getattr(statement, "cases", [])
    for node in [statement, *handlers, *cases]:
        for name in ("body", "orelse", "finalbody"):
            yield getattr(node, name, [])


def _is_left_alone(statement: ast.stmt) -> bool:
    """Return whether the operators change nothing in this statement."""
    if isinstance(statement, _LEFT_ALONE):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True  # a docstring
    if isinstance(statement, ast.Assign):
        return any(_is_name(target, "__all__") for target in statement.targets)
    if isinstance(statement, ast.If):
        condition = ast.unparse(statement.test)
        return "TYPE_CHECKING" in condition or "__name__" in condition
    return False


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of the statement that may be changed.

    Types, decorators and texts are left out, and so are the statements inside this one.
    """
    for name, value in ast.iter_fields(statement):
        if name in ("annotation", "returns", "decorator_list", "target", "targets", "type_params"):
            continue
        nodes = value if isinstance(value, list) else [value]
        for node in nodes:
            if isinstance(node, ast.AST) and not isinstance(node, ast.stmt):
                yield from _expressions_in(node)


def _expressions_in(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the node, if it is an expression, and the expressions inside it."""
    if isinstance(node, ast.expr):
        yield node
    # An f-string is text. Of a parameter, only the type could be changed.
    if isinstance(node, (ast.JoinedStr, ast.arg)):
        return
    # What looks like an index with a comma is nearly always a type, such as dict[str, int].
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        yield from _expressions_in(node.value)
        return
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            yield from _expressions_in(child)


def _can_be_removed(statement: ast.stmt, *, is_last: bool) -> bool:
    """Return whether the code still makes sense without the statement.

    An assignment to a plain name stays: without it, each use of the name only raises NameError.
    """
    if isinstance(statement, (ast.Raise, ast.AugAssign, ast.Delete, ast.Break, ast.Continue)):
        return True
    if isinstance(statement, ast.Return):
        return statement.value is None or not is_last
    if isinstance(statement, ast.Assign):
        without_name = (ast.Attribute, ast.Subscript)
        return all(isinstance(target, without_name) for target in statement.targets)
    return False


def _can_be_swapped(before: ast.stmt, after: ast.stmt) -> bool:
    """Return whether both are simple steps, and the second uses no name that the first assigns."""
    steps = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)
    if not isinstance(before, steps) or not isinstance(after, steps):
        return False
    # The order of two assignments almost never matters.
    if isinstance(before, ast.Assign) and isinstance(after, ast.Assign):
        return False
    assigned = {name.id for name in _names_in(before) if isinstance(name.ctx, ast.Store)}
    used = {name.id for name in _names_in(after)}
    return assigned.isdisjoint(used)


def _names_in(statement: ast.stmt) -> Iterator[ast.Name]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node


def _is_call(statement: ast.stmt) -> TypeGuard[ast.Expr]:
    """Return whether the statement is a call, or an `await`, whose result is not used."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Await))


def _is_clean_up(node: ast.expr) -> bool:
    """Return whether this is a call that closes, flushes, releases or deletes something."""
    call = node.value if isinstance(node, ast.Await) else node
    if not isinstance(call, ast.Call):
        return False
    function_name = ast.unparse(call.func).rpartition(".")[2]
    return any(word in function_name for word in _CLEAN_UP)


def _is_call_of(node: ast.expr, *names: str) -> bool:
    """Return whether this is a call of a function with one of these names."""
    return isinstance(node, ast.Call) and any(_is_name(node.func, name) for name in names)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_text(node: ast.expr) -> bool:
    """Return whether this is a string, bytes or an f-string."""
    if isinstance(node, ast.JoinedStr):
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _without(members: Sequence[_Member], index: int) -> list[_Member]:
    """Return the members except the one with this index."""
    return [*members[:index], *members[index + 1 :]]


def _negated(condition: ast.expr) -> ast.expr:
    """Return `not a` for `a`, and `a` for `not a`."""
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        return condition.operand
    return ast.UnaryOp(op=ast.Not(), operand=copy.deepcopy(condition))


def _is_same_code(one: object, other: object) -> bool:
    """Return whether two code objects, or constants of them, are equal except for line numbers."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        # The types matter as well: 1 == True, but the code behaves differently.
        return type(one) is type(other) and one == other
    for name in _COMPARED_CODE:
        if getattr(one, name) != getattr(other, name):
            return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    # The code of inner functions is among the constants.
    return all(map(_is_same_code, one.co_consts, other.co_consts))
