"""Find out which bytecode instructions use memory that threads share.

`counter += 1` is one line but two accesses: it reads the variable, and later writes it. A thread
switch may come in between. So the lab stops a thread before each *access*, see threads.py.
Instructions that only use what belongs to one thread, such as a jump, are part of the access before
them: another thread cannot notice when they happen.

The names in the expression of an instruction lead to the objects that it uses, see
expression_value.py. Where they do not, the access is assumed to be a call of unknown code, which
may change anything.

The effects of an access are written like those of a call on files, see kit/stepping/effects.py.
There are three kinds of resources:

* `value NAME`: the variable or the attribute with this name. All objects share the name.
* `objects`: what is in lists, dictionaries, sets and other objects. It is one resource, because the
  same list may have several names.
* `memory`: unknown code writes it, and every access reads it. So unknown code conflicts with every
  access, and two accesses do not conflict only because of this.
"""

import ast
import functools
import inspect
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Literal, NoReturn

from ..kit.stepping.effects import READ, WRITE, Effects
from .expression_value import UNKNOWN, source_of, value_of, value_of_variable
from .instructions import (
    Instruction,
    InstructionKind,
    NodesByPosition,
    code_and_inner_code,
    find_instructions,
    names_assigned_in,
    nodes_by_position,
)
from .refusals import refuse

MEMORY = "memory"
"""The resource that unknown code writes, and that every access reads."""
OBJECTS = "objects"
"""The resource for what is in all objects."""

_IMMUTABLE = (bool, int, float, complex, str, bytes, tuple, frozenset, range, type(None))
_CONTAINERS = (list, dict, set, bytearray, deque)
_READING_METHODS = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
"""The methods of containers that change nothing."""
_FUNCTIONS_THAT_CHANGE_NOTHING = frozenset(
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

_CANNOT_BE_STEPPED: tuple[Any, ...] = (exec, eval, sys.settrace, sys.setprofile, threading.settrace)
"""Functions that run code whose accesses the lab would not find, or that end the tracing."""

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
"""The types of functions, methods, classes and modules."""

_NEEDS_NO_STOP = "_lab_needs_no_stop"
"""The attribute with which `mark_as_needing_no_stop` marks a function or a class."""


@dataclass(frozen=True)
class Access:
    """One use of shared memory that a thread is about to make."""

    verb: Literal["read", "write", "call"]
    name: str
    """The variable, the attribute, or the expression that is used."""
    effects: Effects

    @property
    def event(self) -> str:
        """The name of the event before which the thread stops, such as `memory.read`."""
        return f"memory.{self.verb}"

    @property
    def reads_objects(self) -> bool:
        """Whether the access loads an object that later instructions of the line may read."""
        return OBJECTS in self.effects


def variable_resource(name: str) -> str:
    """Return the resource for all variables and attributes with this name."""
    return f"value {name}"


def mark_as_needing_no_stop(function_or_class: Any) -> None:
    """Mark a function or class of the lab: it stops by itself, or its calls need no stop."""
    setattr(function_or_class, _NEEDS_NO_STOP, True)


class AccessFinder:
    """Finds the instructions of some files that use shared memory."""

    def __init__(self) -> None:
        self._nodes_by_file: dict[str, NodesByPosition] = {}
        self._assigned_names: set[str] = set()
        """The names of all variables and attributes to which the files assign a value."""
        self._nodes_before_a_dot: set[ast.AST] = set()
        """The expressions of which an attribute is read. This is an access of its own."""
        self._any_name_may_change = False
        """Whether the files use a function such as setattr(), which may assign to any name."""
        self._instructions_by_code: dict[CodeType, dict[int, Instruction]] = {}
        """The instructions of each function that may use shared memory, by their offset."""
        self._find_by_kind: Mapping[
            InstructionKind, Callable[[Instruction, FrameType], Access | None]
        ] = {
            InstructionKind.LOAD_VARIABLE: self._find_load,
            InstructionKind.LOAD_ATTRIBUTE: self._find_attribute,
            InstructionKind.STORE: self._find_store,
            InstructionKind.STORE_ITEM: self._find_store_item,
            InstructionKind.UPDATE: self._find_update,
            InstructionKind.ITERATE: self._find_iteration,
            InstructionKind.CALL: self._find_call,
        }
        """The method that finds the access of an instruction. It returns None if there is none."""

    def add_file(self, path: str, source: str, code: CodeType) -> None:
        """Add a file, so that `find` finds the accesses in its code and in its functions.

        `code` is the compiled `source`.
        """
        tree = ast.parse(source)
        self._nodes_by_file[path] = nodes_by_position(tree)
        self._nodes_before_a_dot.update(_nodes_before_a_dot(tree))
        for function_code in code_and_inner_code(code):
            self._assigned_names.update(names_assigned_in(function_code))
            if _may_change_any_name(function_code):
                self._any_name_may_change = True

    def has_file(self, path: str) -> bool:
        """Return whether this file was added."""
        return path in self._nodes_by_file

    def find(self, frame: FrameType) -> Access | None:
        """Return the use of shared memory that the next instruction of the frame makes.

        Return None if this instruction uses no memory that another thread can change.
        """
        instructions = self._instructions_of(frame.f_code)
        instruction = instructions.get(frame.f_lasti)
        if instruction is None:
            return None
        find_access = self._find_by_kind[instruction.kind]
        return find_access(instruction, frame)

    def _instructions_of(self, code: CodeType) -> dict[int, Instruction]:
        """Return the instructions of a function that may use shared memory, by their offset."""
        if code not in self._instructions_by_code:
            nodes = self._nodes_by_file[code.co_filename]
            self._instructions_by_code[code] = find_instructions(code, nodes)
        return self._instructions_by_code[code]

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

    def _may_change(self, name: str) -> bool:
        """Return whether the files may assign to a variable or attribute with this name."""
        return self._any_name_may_change or name in self._assigned_names

    def _find_load(self, instruction: Instruction, frame: FrameType) -> Access | None:
        """Return the access of an instruction that loads variables, or None if none is shared."""
        effects: Effects = {MEMORY: READ}
        shared_names = []
        for name in instruction.names:
            effects_of_name = self._effects_of_loading(name, instruction.node, frame)
            if effects_of_name:
                shared_names.append(name)
                effects.update(effects_of_name)
        if not shared_names:
            return None
        return Access("read", ", ".join(shared_names), effects)

    def _effects_of_loading(self, name: str, node: ast.AST | None, frame: FrameType) -> Effects:
        """Return the effects of loading a variable. They are empty if no other thread can notice.

        Other threads may change the variable, or the object that is its value.
        """
        value = value_of_variable(name, frame)
        effects: Effects = {}
        if self._is_shared_variable(name, value, frame):
            effects[variable_resource(name)] = READ
        if self._may_be_read_next(node, value):
            effects[OBJECTS] = READ
        return effects

    def _may_be_read_next(self, node: ast.AST | None, value: object) -> bool:
        """Return whether the next instructions may read an object that was loaded.

        They may compare it, for example, or read one of its items.
        """
        if isinstance(value, _CONTAINERS):
            return True
        if value is UNKNOWN or isinstance(value, (*_IMMUTABLE, *_CODE_TYPES)):
            return False
        if node in self._nodes_before_a_dot or self.has_own_class(value):
            return False
        return not hasattr(type(value), _NEEDS_NO_STOP)

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

    def _find_attribute(self, instruction: Instruction, frame: FrameType) -> Access | None:
        """Return the access of an instruction that loads an attribute.

        Return None if no other thread can change what it loads.
        """
        name = instruction.names[0]
        value = value_of(instruction.node, frame)
        if isinstance(value, _CODE_TYPES):
            # A method, or a function of a module.
            return None
        if isinstance(value, functools.cached_property):
            _refuse_cached_property(source_of(instruction.node))
        if not self._may_change(name) and _is_constant_of_library(instruction.node, frame):
            return None
        effects = {MEMORY: READ}
        if not _belongs_to_one_thread(instruction.node, frame):
            effects[variable_resource(name)] = READ
        elif isinstance(value, _IMMUTABLE):
            return None
        if not isinstance(value, _IMMUTABLE):
            effects[OBJECTS] = READ
        return Access("read", source_of(instruction.node) or name, effects)

    def _find_store(self, instruction: Instruction, frame: FrameType) -> Access | None:
        """Return the access of an assignment to a variable or an attribute.

        Return None if no other thread can read the variable or attribute.
        """
        if _belongs_to_one_thread(instruction.node, frame):
            return None
        name = instruction.names[0]
        return _write_access(source_of(instruction.node) or name, variable_resource(name))

    def _find_store_item(self, instruction: Instruction, _frame: FrameType) -> Access:
        """Return the access of an assignment to an item of a list or dictionary."""
        return _write_access(source_of(instruction.node), OBJECTS)

    def _find_update(self, instruction: Instruction, frame: FrameType) -> Access | None:
        """Return the change of an object by `+=`, or None if objects of its type cannot change."""
        target = None
        if isinstance(instruction.node, ast.AugAssign):
            target = instruction.node.target
        value = value_of(target, frame)
        if isinstance(value, _IMMUTABLE) or self.has_own_class(value):
            return None
        return _write_access(source_of(target), OBJECTS)

    def _find_iteration(self, instruction: Instruction, frame: FrameType) -> Access | None:
        """Return the read of the next item in a loop, or None if the items cannot change."""
        iterated = instruction.node
        if isinstance(iterated, ast.For):
            iterated = iterated.iter
        if isinstance(iterated, ast.Call) and value_of(iterated.func, frame) is range:
            return None
        if isinstance(value_of(iterated, frame), _IMMUTABLE):
            return None
        return _read_of_objects(source_of(iterated) or "the next item")

    def _find_call(self, instruction: Instruction, frame: FrameType) -> Access | None:
        """Return the access of a call, or None if the call itself uses no shared memory."""
        node = instruction.node
        if isinstance(node, ast.With | ast.AsyncWith):
            # The end of a with block. A lock stops by itself.
            return None
        if not isinstance(node, ast.Call):
            return _call_of_unknown_code(source_of(node) or "a function")
        called = source_of(node.func)
        if isinstance(node.func, ast.Attribute):
            receiver = value_of(node.func.value, frame)
            if isinstance(receiver, _IMMUTABLE) or isinstance(node.func.value, ast.JoinedStr):
                return None
            if isinstance(receiver, _CONTAINERS):
                return _call_of_container(called, node.func.attr)
        function = value_of(node.func, frame)
        _refuse_what_cannot_be_stepped(function, called)
        if self._needs_no_stop(function):
            return None
        return _call_of_unknown_code(called)

    def _needs_no_stop(self, function: Any) -> bool:
        """Return whether a thread need not stop before a call of this function."""
        if isinstance(function, FunctionType):
            # In functions of the files, `find` finds the accesses of each instruction.
            return self.has_file(function.__code__.co_filename) or hasattr(function, _NEEDS_NO_STOP)
        if isinstance(function, type):
            if hasattr(function, _NEEDS_NO_STOP) or issubclass(function, BaseException):
                return True
            if self._is_own_class(function):
                return True
        try:
            return function in _FUNCTIONS_THAT_CHANGE_NOTHING
        except TypeError:
            # The object cannot be hashed, so it is none of these functions.
            return False

    def _is_own_class(self, candidate: type) -> bool:
        """Return whether one of the files defines a method of this class."""
        for value in vars(candidate).values():
            if isinstance(value, FunctionType) and self.has_file(value.__code__.co_filename):
                return True
        return False


def _nodes_before_a_dot(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield each expression of a file of which an attribute is read, such as `x` in `x.y`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.value


def _may_change_any_name(code: CodeType) -> bool:
    """Return whether a function uses a function such as setattr(), which may assign to any name."""
    return not _CHANGE_ANY_NAME.isdisjoint(code.co_names)


def _write_access(name: str, resource: str) -> Access:
    """Return the access that writes this resource."""
    return Access("write", name, {MEMORY: READ, resource: WRITE})


def _read_of_objects(name: str) -> Access:
    """Return the access that reads what is in an object."""
    return Access("read", name, {MEMORY: READ, OBJECTS: READ})


def _call_of_container(called: str, method: str) -> Access:
    """Return the access of a call of a method of a list, a dictionary or another container."""
    if method in _READING_METHODS:
        return _read_of_objects(called)
    return Access("call", called, {MEMORY: READ, OBJECTS: WRITE})


def _call_of_unknown_code(called: str) -> Access:
    """Return the access of a call that may use any shared memory."""
    return Access("call", called, {MEMORY: WRITE})


def _refuse_what_cannot_be_stepped(function: Any, called: str) -> None:
    """Exit with an error if a call would run code before whose accesses no thread can stop."""
    # An object of the file may define `==`, so compare identities.
    if any(function is refused for refused in _CANNOT_BE_STEPPED):
        refuse(f"runs code that the lab cannot stop ({called})")


def _refuse_cached_property(source: str) -> NoReturn:
    """Exit with an error about the use of a cached property."""
    refuse(
        f"uses functools.cached_property ({source}), whose lock and cache the lab cannot see; "
        "store the value in an attribute instead"
    )


def _belongs_to_one_thread(node: ast.AST | None, frame: FrameType) -> bool:
    """Return whether an expression is an attribute of a threading.local() object.

    Each thread has its own value of such an attribute.
    """
    if not isinstance(node, ast.Attribute):
        return False
    # A subclass may have attributes in its class, which all threads share.
    return type(value_of(node.value, frame)) is threading.local


def _is_constant_of_library(node: ast.AST | None, frame: FrameType) -> bool:
    """Return whether an expression is an immutable value in a module of Python, such as math.pi."""
    if not isinstance(node, ast.Attribute):
        return False
    module = value_of(node.value, frame)
    if not isinstance(module, ModuleType):
        return False
    package = module.__name__.partition(".")[0]
    return package in sys.stdlib_module_names and isinstance(value_of(node, frame), _IMMUTABLE)
