"""Find the bytecode instructions that may use shared memory, each with its expression.

The value stack of a frame cannot be seen from Python. But each instruction knows its position in
the source. So its *node*, the part of the syntax tree at this position, leads to the objects that
the instruction uses.
"""

import ast
import dis
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import CodeType

Position = tuple[int | None, int | None, int | None, int | None]
"""First line, last line, first column and last column."""

NodesByPosition = Mapping[Position, Sequence[ast.AST]]
"""The expressions and statements at each position of a file."""


class InstructionKind(Enum):
    """The kind of an instruction that may use shared memory."""

    LOAD_VARIABLE = auto()
    LOAD_ATTRIBUTE = auto()
    STORE = auto()
    """An assignment to a variable or an attribute."""
    STORE_ITEM = auto()
    """An assignment to an item of a list or dictionary."""
    UPDATE = auto()
    """An update of a value in place, such as `+=`."""
    ITERATE = auto()
    """The fetching of the next item in a loop."""
    CALL = auto()


_KIND_BY_NAME: Mapping[str, InstructionKind] = {
    "CALL": InstructionKind.CALL,
    "CALL_FUNCTION_EX": InstructionKind.CALL,
    "CALL_KW": InstructionKind.CALL,
    "DELETE_ATTR": InstructionKind.STORE,
    "DELETE_DEREF": InstructionKind.STORE,
    "DELETE_GLOBAL": InstructionKind.STORE,
    "DELETE_SUBSCR": InstructionKind.STORE_ITEM,
    "FOR_ITER": InstructionKind.ITERATE,
    # These read attributes of objects or modules. They are treated like calls of unknown code.
    "IMPORT_FROM": InstructionKind.CALL,
    "MATCH_CLASS": InstructionKind.CALL,
    "MATCH_KEYS": InstructionKind.CALL,
    "LOAD_ATTR": InstructionKind.LOAD_ATTRIBUTE,
    "LOAD_DEREF": InstructionKind.LOAD_VARIABLE,
    "LOAD_GLOBAL": InstructionKind.LOAD_VARIABLE,
    "LOAD_METHOD": InstructionKind.LOAD_ATTRIBUTE,
    "LOAD_NAME": InstructionKind.LOAD_VARIABLE,
    "LOAD_SUPER_ATTR": InstructionKind.LOAD_ATTRIBUTE,
    "STORE_ATTR": InstructionKind.STORE,
    "STORE_DEREF": InstructionKind.STORE,
    "STORE_GLOBAL": InstructionKind.STORE,
    "STORE_SLICE": InstructionKind.STORE_ITEM,
    "STORE_SUBSCR": InstructionKind.STORE_ITEM,
}
"""The instructions by their names in bytecode. `_kind_of` finds some more."""

_NODE_TYPES: Mapping[InstructionKind, tuple[type[ast.AST], ...]] = {
    InstructionKind.LOAD_VARIABLE: (ast.Name,),
    InstructionKind.LOAD_ATTRIBUTE: (ast.Attribute,),
    InstructionKind.STORE: (ast.Name, ast.Attribute),
    InstructionKind.STORE_ITEM: (ast.Subscript,),
    InstructionKind.UPDATE: (ast.AugAssign,),
    InstructionKind.ITERATE: (ast.For, ast.expr),
    InstructionKind.CALL: (ast.Call, ast.With, ast.AsyncWith),
}
"""The syntax for which the compiler generates these instructions."""


@dataclass(frozen=True)
class Instruction:
    """An instruction that may use shared memory."""

    kind: InstructionKind
    names: tuple[str, ...]
    """The names of the variables or of the attribute. Some instructions load two variables."""
    node: ast.AST | None
    """The part of the syntax tree for the instruction, or None if it is unknown."""


def find_instructions(code: CodeType, nodes: NodesByPosition) -> dict[int, Instruction]:
    """Return the instructions that may use shared memory, by their offset in the code.

    `nodes` are those of the file to which the code belongs.
    """
    instructions = {}
    prefix_offset: int | None = None
    for bytecode in dis.get_instructions(code):
        if bytecode.opname == "EXTENDED_ARG":
            # An instruction with a large argument has one or several such prefixes.
            if prefix_offset is None:
                prefix_offset = bytecode.offset
            continue
        kind = _kind_of(bytecode)
        if kind is not None:
            instruction = Instruction(kind, _names_in(bytecode), _node_of(bytecode, kind, nodes))
            instructions[bytecode.offset] = instruction
            if prefix_offset is not None:
                # Python 3.11 traces the first prefix instead of the instruction.
                instructions[prefix_offset] = instruction
        prefix_offset = None
    return instructions


def names_assigned_in(code: CodeType) -> Iterator[str]:
    """Yield the variables and attributes that the code assigns to. Leave out local variables."""
    for bytecode in dis.get_instructions(code):
        if _KIND_BY_NAME.get(bytecode.opname) == InstructionKind.STORE:
            yield str(bytecode.argval)


def nodes_by_position(tree: ast.Module) -> NodesByPosition:
    """Return the expressions and statements at each position of a file."""
    nodes: dict[Position, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            position = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            nodes.setdefault(position, []).append(node)
    return nodes


def code_and_inner_code(code: CodeType) -> Iterator[CodeType]:
    """Yield the code and that of all functions and classes in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_and_inner_code(constant)


def _kind_of(bytecode: dis.Instruction) -> InstructionKind | None:
    """Return the kind of an instruction, or None if it never uses shared memory."""
    if "LOAD_FAST" in bytecode.opname:
        # Newer versions of Python have variants of it, such as STORE_FAST_LOAD_FAST.
        return InstructionKind.LOAD_VARIABLE
    if bytecode.opname == "BINARY_OP" and bytecode.argrepr.endswith("="):
        return InstructionKind.UPDATE
    return _KIND_BY_NAME.get(bytecode.opname)


def _names_in(bytecode: dis.Instruction) -> tuple[str, ...]:
    """Return the names of the variables or of the attribute that an instruction uses."""
    argument = bytecode.argval
    if isinstance(argument, tuple):
        return argument
    return (str(argument),)


def _node_of(
    bytecode: dis.Instruction, kind: InstructionKind, nodes: NodesByPosition
) -> ast.AST | None:
    """Return the node at the position of an instruction, or None if it has none."""
    if bytecode.positions is None:
        return None
    position = (
        bytecode.positions.lineno,
        bytecode.positions.end_lineno,
        bytecode.positions.col_offset,
        bytecode.positions.end_col_offset,
    )
    for node in nodes.get(position, []):
        if isinstance(node, _NODE_TYPES[kind]):
            return node
    return None
