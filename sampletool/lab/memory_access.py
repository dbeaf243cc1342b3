"""Find out which bytecode instructions use memory that threads share.

`counter += 1` is one line but two accesses: it reads the variable, and later writes it. A thread
switch may come in between. So the lab stops a thread before each *access*, see learner_threads.py.
Instructions that only use what belongs to one thread, such as a jump, are part of the access before
them: another thread cannot notice when they happen.

The value stack of a frame cannot be seen from Python. But each instruction knows its place in the
source, so the names in the expression there lead to the objects. Where they do not, the access is
assumed to be a call of unknown code, which may change anything.

The effects of an access are written like those of a call on files, see kit/stepping/effects.py:

* `value NAME`: the variable or the attribute with this name. All objects share the name.
* `objects`: what is in lists, dictionaries, sets and other objects. It is one resource, because the
  same list may have several names.
* `memory`: unknown code writes it, and every access reads it. So unknown code conflicts with every
  access, and two accesses do not conflict only because of this.
"""

import ast
import builtins
import dis
import inspect
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Literal

from ..kit.stepping.effects import READ, WRITE, Effects
from .refusals import refuse

Kind = Literal["load", "load attribute", "store", "store item", "update", "iterate", "call"]

Position = tuple[int | None, int | None, int | None, int | None]
"""First line, last line, first column and last column."""

_KINDS: Mapping[str, Kind] = {
    "CALL": "call",
    "CALL_FUNCTION_EX": "call",
    "CALL_KW": "call",
    "DELETE_ATTR": "store",
    "DELETE_DEREF": "store",
    "DELETE_GLOBAL": "store",
    "DELETE_SUBSCR": "store item",
    "FOR_ITER": "iterate",
    # These read attributes of objects or modules. They are treated like calls of unknown code.
    "IMPORT_FROM": "call",
    "MATCH_CLASS": "call",
    "MATCH_KEYS": "call",
    "LOAD_ATTR": "load attribute",
    "LOAD_DEREF": "load",
    "LOAD_GLOBAL": "load",
    "LOAD_METHOD": "load attribute",
    "LOAD_NAME": "load",
    "LOAD_SUPER_ATTR": "load attribute",
    "STORE_ATTR": "store",
    "STORE_DEREF": "store",
    "STORE_GLOBAL": "store",
    "STORE_SLICE": "store item",
    "STORE_SUBSCR": "store item",
}
"""The instructions that may be accesses. LOAD_FAST and its variants are loads, too."""

_IMMUTABLE = (bool, int, float, complex, str, bytes, tuple, frozenset, range, type(None))
_CONTAINERS = (list, dict, set, bytearray, deque)
_READING_METHODS = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
_WITHOUT_EFFECT = frozenset(
    {
        *(abs, all, any, bool, bytes, chr, dict, divmod, enumerate, float, format, frozenset),
        *(hash, id, int, isinstance, issubclass, len, list, max, min, ord, print, range, repr),
        *(reversed, round, set, sorted, str, sum, super, tuple, type, zip),
        threading.get_ident,
    }
)
"""Functions that read at most their arguments, which the accesses before the call have loaded."""

_CHANGE_ANY_NAME = frozenset(
    {"__dict__", "eval", "exec", "globals", "import_module", "modules", "setattr", "vars"}
)
"""Names in a file that may assign to any variable. Then no variable counts as constant."""

_UNKNOWN: Any = object()
"""The value of an expression that cannot be found out without running code."""


@dataclass(frozen=True)
class Access:
    """One use of shared memory that a thread is about to make."""

    event: Literal["memory.read", "memory.write", "memory.call"]
    name: str
    """The variable, the attribute, or the expression that is used."""
    effects: Effects

    @property
    def verb(self) -> str:
        """The kind of access: `read`, `write` or `call`."""
        return self.event.removeprefix("memory.")

    @property
    def reads_objects(self) -> bool:
        """Whether the access loads an object that later instructions of the line may read."""
        return "objects" in self.effects


@dataclass(frozen=True)
class _Instruction:
    """An instruction that may be an access."""

    kind: Kind
    names: tuple[str, ...]
    """The names of the variables or of the attribute. Some instructions load two variables."""
    node: ast.AST | None
    """The syntax node of the instruction, or None if it is unknown."""


class AccessFinder:
    """Finds the instructions of some files that use shared memory."""

    def __init__(self) -> None:
        # The syntax nodes of each file, by their position in the source.
        self._nodes: dict[str, dict[Position, list[ast.AST]]] = {}
        # The names of all variables and attributes to which the files assign a value.
        self._assigned: set[str] = set()
        self._bases_of_attributes: set[ast.AST] = set()
        """The names before a dot. What comes after the dot is an access of its own."""
        # Whether the files use a function such as setattr(), which may assign to any name.
        self._any_name_may_change = False
        # The instructions of each code object that may use shared memory, by their offset.
        self._instructions: dict[CodeType, dict[int, _Instruction]] = {}
        # The method for each kind of instruction. It returns None if the access is harmless.
        self._find_by_kind: Mapping[Kind, Callable[[_Instruction, FrameType], Access | None]] = {
            "load": self._find_load,
            "load attribute": self._find_attribute,
            "store": self._find_store,
            "store item": self._find_store_item,
            "update": self._find_update,
            "iterate": self._find_iteration,
            "call": self._find_call,
        }

    def add_file(self, path: str, source: str, code: CodeType) -> None:
        """Add a file, so that `find` finds the accesses in its code and in its functions."""
        tree = ast.parse(source)
        self._nodes[path] = _nodes_by_position(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                self._bases_of_attributes.add(node.value)
        for each in _all_code(code):
            self._collect_assignments(each)

    def has_file(self, path: str) -> bool:
        """Return whether this file was added."""
        return path in self._nodes

    def find(self, frame: FrameType) -> Access | None:
        """Return the access of the next instruction of the frame. Return None if it has none."""
        code = frame.f_code
        instructions = self._instructions.get(code)
        if instructions is None:
            instructions = dict(self._possible_accesses(code))
            self._instructions[code] = instructions
        instruction = instructions.get(frame.f_lasti)
        if instruction is None:
            return None
        return self._find_by_kind[instruction.kind](instruction, frame)

    def is_variable(self, name: str, value: object) -> bool:
        """Return whether threads can change the value of this module-level variable."""
        if self._may_change(name) or isinstance(value, _CONTAINERS):
            return True
        return self.has_own_class(value)

    def has_own_class(self, value: object) -> bool:
        """Return whether the value is an object whose class one of the files defines."""
        if isinstance(value, type | ModuleType | FunctionType):
            return False
        return self._is_own_class(type(value))

    def _collect_assignments(self, code: CodeType) -> None:
        """Store the variables and attributes that the code assigns to."""
        if _CHANGE_ANY_NAME & {*code.co_names}:
            self._any_name_may_change = True
        for instruction in dis.get_instructions(code):
            if _KINDS.get(instruction.opname) == "store":
                self._assigned.add(str(instruction.argval))

    def _may_change(self, name: str) -> bool:
        """Return whether the files may assign to a variable or attribute with this name."""
        return self._any_name_may_change or name in self._assigned

    def _possible_accesses(self, code: CodeType) -> Iterator[tuple[int, _Instruction]]:
        """Yield the instructions that may use shared memory, each with its offset."""
        nodes = self._nodes[code.co_filename]
        prefix_offset: int | None = None
        for instruction in dis.get_instructions(code):
            if instruction.opname == "EXTENDED_ARG":
                if prefix_offset is None:
                    prefix_offset = instruction.offset
                continue
            kind = _kind_of(instruction)
            first_offset, prefix_offset = prefix_offset, None
            if kind is None:
                continue
            argument = instruction.argval
            names = argument if isinstance(argument, tuple) else (str(argument),)
            position: Position = (None, None, None, None)
            if instruction.positions is not None:
                where = instruction.positions
                position = (where.lineno, where.end_lineno, where.col_offset, where.end_col_offset)
            node = _node_for(kind, nodes.get(position, []))
            found = _Instruction(kind, names, node)
            yield instruction.offset, found
            if first_offset is not None:
                # Python 3.11 traces the prefix of a long instruction instead of the instruction.
                yield first_offset, found

    def _find_load(self, instruction: _Instruction, frame: FrameType) -> Access | None:
        """Return the access of an instruction that loads variables, or None if none is shared."""
        all_effects: Effects = {"memory": READ}
        used_names = []
        for name in instruction.names:
            value = _value_of_name(name, frame)
            effects: Effects = {}
            if self._is_shared_variable(name, value, frame):
                effects[f"value {name}"] = READ
            if self._may_be_read_next(instruction.node, value):
                effects["objects"] = READ
            if effects:
                used_names.append(name)
                all_effects |= effects
        if not used_names:
            return None
        return Access("memory.read", ", ".join(used_names), all_effects)

    def _may_be_read_next(self, node: ast.AST | None, value: object) -> bool:
        """Return whether the next instructions may read an object that was loaded.

        They may compare it, for example, or read one of its items.
        """
        if isinstance(value, _CONTAINERS):
            return True
        if value is _UNKNOWN or isinstance(value, (*_IMMUTABLE, *_CODE_TYPES)):
            return False
        if node in self._bases_of_attributes or self.has_own_class(value):
            return False
        return not hasattr(type(value), NO_ACCESS)

    def _is_shared_variable(self, name: str, value: object, frame: FrameType) -> bool:
        """Return whether other threads can assign to the variable that this name means here."""
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            # Several threads may continue the same generator.
            return True
        if isinstance(value, ModuleType) or not self._may_change(name):
            return False
        code = frame.f_code
        # The variables of a class body or of a module are not optimized, and may be shared.
        is_local_variable = code.co_flags & inspect.CO_OPTIMIZED and name in code.co_varnames
        return not is_local_variable

    def _find_attribute(self, instruction: _Instruction, frame: FrameType) -> Access | None:
        """Return the access of an instruction that loads an attribute.

        Return None if no other thread can change what it loads.
        """
        name = instruction.names[0]
        value = _value_of(instruction.node, frame)
        if isinstance(value, _CODE_TYPES):
            # A method, or a function of a module.
            return None
        if not self._may_change(name) and _is_constant_of_library(instruction.node, frame):
            return None
        effects = {"memory": READ, f"value {name}": READ, "objects": READ}
        if isinstance(value, _IMMUTABLE):
            del effects["objects"]
        return Access("memory.read", _source_of(instruction.node) or name, effects)

    def _find_store(self, instruction: _Instruction, _frame: FrameType) -> Access:
        """Return the access of an assignment to a variable or an attribute."""
        name = instruction.names[0]
        return _write(_source_of(instruction.node) or name, f"value {name}")

    def _find_store_item(self, instruction: _Instruction, _frame: FrameType) -> Access:
        """Return the access of an assignment to an item of a list or dictionary."""
        return _write(_source_of(instruction.node), "objects")

    def _find_update(self, instruction: _Instruction, frame: FrameType) -> Access | None:
        """Return the change of an object by `+=`, or None if objects of its type cannot change."""
        target = instruction.node.target if isinstance(instruction.node, ast.AugAssign) else None
        value = _value_of(target, frame)
        if isinstance(value, _IMMUTABLE) or self.has_own_class(value):
            return None
        return _write(_source_of(target), "objects")

    def _find_iteration(self, instruction: _Instruction, frame: FrameType) -> Access | None:
        """Return the read of the next item in a loop, or None if the items cannot change."""
        iterated = instruction.node
        if isinstance(iterated, ast.For):
            iterated = iterated.iter
        if isinstance(iterated, ast.Call) and _value_of(iterated.func, frame) is range:
            return None
        if isinstance(_value_of(iterated, frame), _IMMUTABLE):
            return None
        effects = {"memory": READ, "objects": READ}
        return Access("memory.read", _source_of(iterated) or "the next item", effects)

    def _find_call(self, instruction: _Instruction, frame: FrameType) -> Access | None:
        """Return the access of a call, or None if the call itself uses no shared memory."""
        node = instruction.node
        if isinstance(node, ast.With | ast.AsyncWith):
            # The end of a with block. A lock stops by itself.
            return None
        if not isinstance(node, ast.Call):
            return Access("memory.call", _source_of(node) or "a function", {"memory": WRITE})
        called = _source_of(node.func)
        if isinstance(node.func, ast.Attribute):
            receiver = _value_of(node.func.value, frame)
            if isinstance(receiver, _IMMUTABLE) or isinstance(node.func.value, ast.JoinedStr):
                return None
            if isinstance(receiver, _CONTAINERS):
                return _call_of_container(called, node.func.attr)
        function = _value_of(node.func, frame)
        _refuse_what_cannot_be_stepped(function, called)
        if self._is_harmless(function):
            return None
        return Access("memory.call", called, {"memory": WRITE})

    def _is_harmless(self, function: Any) -> bool:
        """Return whether a call of this function needs no stop of its own."""
        if isinstance(function, FunctionType):
            # In functions of the files, `find` finds the accesses of each instruction.
            return function.__code__.co_filename in self._nodes or hasattr(function, NO_ACCESS)
        if isinstance(function, type):
            if hasattr(function, NO_ACCESS) or issubclass(function, BaseException):
                return True
            if self._is_own_class(function):
                return True
        try:
            return function in _WITHOUT_EFFECT
        except TypeError:
            return False

    def _is_own_class(self, candidate: type) -> bool:
        """Return whether one of the files defines a method of this class."""
        for value in vars(candidate).values():
            if isinstance(value, FunctionType) and value.__code__.co_filename in self._nodes:
                return True
        return False


NO_ACCESS = "_lab_no_access"
"""An attribute of functions and classes of the lab that stop by themselves, or need no stop."""

_CANNOT_BE_STEPPED: tuple[Any, ...] = (exec, eval, sys.settrace, sys.setprofile, threading.settrace)

_CODE_TYPES = (
    BuiltinFunctionType,
    FunctionType,
    ModuleType,
    classmethod,
    staticmethod,
    type,
    type(list.append),
    type(list.__len__),
)


def _kind_of(instruction: dis.Instruction) -> Kind | None:
    """Return the kind of an instruction, or None if it never uses shared memory."""
    if "LOAD_FAST" in instruction.opname:
        # Newer versions of Python have variants of it, such as STORE_FAST_LOAD_FAST.
        return "load"
    if instruction.opname == "BINARY_OP" and instruction.argrepr.endswith("="):
        return "update"
    return _KINDS.get(instruction.opname)


def _call_of_container(called: str, method: str) -> Access:
    """Return the access of a call of a method of a list, a dictionary or another container."""
    if method in _READING_METHODS:
        return Access("memory.read", called, {"memory": READ, "objects": READ})
    return Access("memory.call", called, {"memory": READ, "objects": WRITE})


def _refuse_what_cannot_be_stepped(function: Any, called: str) -> None:
    """Exit with an error if a call would run code before whose accesses no thread can stop."""
    # An object of the file may define `==`, so compare identities.
    if any(function is refused for refused in _CANNOT_BE_STEPPED):
        refuse(f"runs code that the lab cannot stop ({called})")


def _is_constant_of_library(node: ast.AST | None, frame: FrameType) -> bool:
    """Return whether an expression is an immutable value in a module of Python, such as math.pi."""
    if not isinstance(node, ast.Attribute):
        return False
    module = _value_of(node.value, frame)
    if not isinstance(module, ModuleType):
        return False
    package = module.__name__.partition(".")[0]
    return package in sys.stdlib_module_names and isinstance(_value_of(node, frame), _IMMUTABLE)


def _write(name: str, resource: str) -> Access:
    """Return the access that writes this resource."""
    return Access("memory.write", name, {"memory": READ, resource: WRITE})


def _all_code(code: CodeType) -> Iterator[CodeType]:
    """Yield the code and that of all functions and classes in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_code(constant)


def _nodes_by_position(tree: ast.Module) -> dict[Position, list[ast.AST]]:
    """Return the expressions and statements at each position in the source."""
    nodes: dict[Position, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            position = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            nodes.setdefault(position, []).append(node)
    return nodes


_NODE_TYPES: Mapping[Kind, tuple[type[ast.AST], ...]] = {
    "load": (ast.Name,),
    "load attribute": (ast.Attribute,),
    "store": (ast.Name, ast.Attribute),
    "store item": (ast.Subscript,),
    "update": (ast.AugAssign,),
    "iterate": (ast.For, ast.expr),
    "call": (ast.Call, ast.With, ast.AsyncWith),
}
"""The syntax for which the compiler generates these instructions."""


def _node_for(kind: Kind, candidates: list[ast.AST]) -> ast.AST | None:
    """Return the first candidate that can be the node of such an instruction, or None."""
    for node in candidates:
        if isinstance(node, _NODE_TYPES[kind]):
            return node
    return None


def _source_of(node: ast.AST | None) -> str:
    """Return the source of a node, or "" if the node is None."""
    if node is None:
        return ""
    return ast.unparse(node)


def _value_of(node: ast.AST | None, frame: FrameType) -> Any:
    """Return the value of an expression, or _UNKNOWN if finding it would run code."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.JoinedStr():
            return ""
        case ast.Name(id=name):
            return _value_of_name(name, frame)
        case ast.Attribute(value=base, attr=name):
            return _value_of_attribute(_value_of(base, frame), name)
        case ast.Subscript(value=base, slice=index):
            return _value_of_item(_value_of(base, frame), _value_of(index, frame))
    return _UNKNOWN


def _value_of_name(name: str, frame: FrameType) -> Any:
    """Return the value of a variable, or _UNKNOWN if it has none."""
    for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
        if name in scope:
            return scope[name]
    return _UNKNOWN


def _value_of_attribute(base: Any, name: str) -> Any:
    """Return the value of an attribute, or _UNKNOWN if reading it would run code."""
    if base is _UNKNOWN:
        return _UNKNOWN
    value = inspect.getattr_static(base, name, _UNKNOWN)
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return _UNKNOWN
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    return value


def _value_of_item(base: Any, index: Any) -> Any:
    """Return the value of an item, or _UNKNOWN if reading it would run code."""
    # Any other type, or a subclass of these, may have its own __getitem__(). Calling it would run
    # code of the file in the middle of a step.
    if type(base) not in (list, tuple, dict) or not isinstance(index, str | int):
        return _UNKNOWN
    try:
        return base[index]
    except (LookupError, TypeError):
        return _UNKNOWN
