"""A file whose workers are threads: what is a step, what waits, and what is found."""

from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Tool
from sampletool.lab.errors import CannotTry
from sampletool.lab.explore import run_every_schedule
from sampletool.lab.recording import Recording
from sampletool.lab.tried import Bound, trying
from tests.lab.support import shared_fork_server

HEAD = """
import queue, threading, time
WORKERS = "threads"
"""
COUNTER = """
counter = 0
lock = threading.Lock()
def invariant():
    assert counter == 2, f"the counter is {counter}"
"""

Try = Callable[..., list[Recording]]


@pytest.fixture
def try_threads(tmp_path: Path) -> Try:
    """Return a function that runs a program on a schedule of each class."""

    def run(program: str, most: int | None = None, bound: Bound | None = None) -> list[Recording]:
        file = tmp_path / "mine.py"
        file.write_text(HEAD + program)
        with (
            trying(file, shared_fork_server(), bound) as tried_file,
            closing(tried_file.runs()) as runs,
        ):
            return [played.recording for played in islice(runs, most)]

    return run


def broken(recordings: list[Recording]) -> list[Recording]:
    return [recording for recording in recordings if recording.is_broken]


def steps(recording: Recording) -> list[str]:
    return [f"{event.worker} {event.step}" for event in recording.events]


def test_a_thread_can_be_switched_between_the_read_and_the_write_of_one_line(
    try_threads: Try,
) -> None:
    runs = try_threads(
        COUNTER
        + """
def worker(name):
    global counter
    counter += 1
"""
    )

    assert steps(runs[0])[:2] == ["A read counter: counter += 1", "A write counter: counter += 1"]
    assert {run.schedule for run in runs if not run.is_broken} == {"A1 A2 B1 B2", "B1 B2 A1 A2"}
    assert {run.reason for run in broken(runs)} == {"the counter is 1"}
    assert runs[0].events[0].at == "mine.py:12"
    assert "counter: 1" in runs[0].events[1].state


def test_a_lock_around_the_update_keeps_the_other_thread_out(try_threads: Try) -> None:
    runs = try_threads(
        COUNTER
        + """
def worker(name):
    global counter
    with lock:
        counter += 1
"""
    )

    assert steps(runs[0])[0] == "A acquire lock"
    assert steps(runs[0])[3] == "A release lock"
    assert len(runs) == 2
    assert broken(runs) == []


def test_a_thread_that_asks_for_a_held_lock_is_not_chosen(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"{HEAD}{COUNTER}\ndef worker(name):\n  with lock:\n    pass\n")

    with trying(file, shared_fork_server()) as tried_file:
        played = tried_file.follow("")

    assert played.choices == [["A1", "B1"], ["A2"], ["B1"], ["B2"]]


def test_only_what_a_method_uses_is_a_step(try_threads: Try) -> None:
    (run,) = try_threads(WRONG["an attribute that a method changes"][0], most=1)

    assert [event.step for event in run.events if event.worker == "A"] == [
        "read self.balance: self.balance += amount",
        "write self.balance: self.balance += amount",
    ]


def test_an_invariant_that_waits_for_a_lock_of_a_worker_breaks_the_run(try_threads: Try) -> None:
    program = """
lock = threading.Lock()
def worker(name):
    if name == "A":
        lock.acquire()
    else:
        lock.locked()
def invariant():
    with lock:
        pass
"""

    with pytest.raises(CannotTry, match="lock was never released by A"):
        try_threads(program)


WRONG = {
    "a value that was read before the lock was taken": (
        COUNTER
        + """
def worker(name):
    global counter
    value = counter
    with lock:
        counter = value + 1
""",
        "the counter is 1",
    ),
    "an update that is skipped while the lock is held": (
        COUNTER
        + """
def worker(name):
    global counter
    if lock.acquire(blocking=False):
        counter += 1
        lock.release()
""",
        "the counter is 1",
    ),
    "an attempt to take a lock that is never released": (
        """
lock = threading.Lock()
winners = []
def worker(name):
    if lock.acquire(blocking=False):
        winners.append(name)
def invariant():
    assert winners == ["A"], "B was first"
""",
        "B was first",
    ),
    "an item of a dictionary": (
        """
counts = {"visits": 0}
def worker(name):
    counts["visits"] += 1
def invariant():
    assert counts == {"visits": 2}, "a visit is lost"
""",
        "a visit is lost",
    ),
    "an attribute that a method changes": (
        """
class Account:
    def __init__(self):
        self.balance = 0
    def deposit(self, amount):
        self.balance += amount
account = Account()
def worker(name):
    account.deposit(5)
def invariant():
    assert account.balance == 10, "a deposit is lost"
""",
        "a deposit is lost",
    ),
    "a property": (
        """
class Account:
    _balance = 0
    @property
    def balance(self):
        return self._balance
    @balance.setter
    def balance(self, value):
        self._balance = value
account = Account()
def worker(name):
    account.balance += 5
def invariant():
    assert account.balance == 10, "a deposit is lost"
""",
        "a deposit is lost",
    ),
    "an attribute in a slot": (
        """
class Account:
    __slots__ = ("balance",)
account = Account()
account.balance = 0
def worker(name):
    account.balance += 5
def invariant():
    assert account.balance == 10, "a deposit is lost"
""",
        "a deposit is lost",
    ),
    "a variable of an outer function": (
        """
def make_counter():
    count = 0
    def increment():
        nonlocal count
        count += 1
    return increment, lambda: count
increment, get = make_counter()
def worker(name):
    increment()
def invariant():
    assert get() == 2, f"the count is {get()}"
""",
        "the count is 1",
    ),
    "a variable that is assigned through globals()": (
        """
is_set = False
seen = None
def worker(name):
    global seen
    if name == "A":
        globals()["is_set"] = True
    else:
        seen = is_set
def invariant():
    assert not seen, "B sees what A has set"
""",
        "B sees what A has set",
    ),
    "a list that is checked before it is used": (
        """
items = ["one"]
def worker(name):
    if items:
        items.pop()
def invariant():
    assert items == []
""",
        "IndexError: pop from empty list",
    ),
    "a list under the name of a local variable": (
        """
shared = {"items": ["one"]}
def worker(name):
    mine = shared["items"]
    if mine:
        mine.pop()
def invariant():
    assert shared == {"items": []}
""",
        "IndexError: pop from empty list",
    ),
    "a list that a library changes": (
        """
import heapq
heap = [1]
def worker(name):
    if heap:
        heapq.heappop(heap)
def invariant():
    assert heap == []
""",
        "IndexError: index out of range",
    ),
    "a list that is compared before it is used": (
        """
items = []
def worker(name):
    if items == []:
        items.append(name)
def invariant():
    assert len(items) == 1, "both have found the list empty"
""",
        "both have found the list empty",
    ),
    "a list that is changed in place after a check": (
        """
items = []
def worker(name):
    global items
    if len(items) == 0:
        items += [name]
def invariant():
    assert len(items) == 1, "both have found the list empty"
""",
        "both have found the list empty",
    ),
    "a dictionary that grows while a loop goes through it": (
        """
items = {1: 1, 2: 2}
def worker(name):
    if name == "A":
        for item in items:
            pass
    else:
        items[3] = 3
def invariant():
    assert len(items) == 3
""",
        "RuntimeError: dictionary changed size during iteration",
    ),
    "a class with one instance": (
        """
class Single:
    instance = None
    created = 0
    def __new__(cls):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            Single.created += 1
        return cls.instance
def worker(name):
    Single()
def invariant():
    assert Single.created == 1, "there are two"
""",
        "there are two",
    ),
    "an event that is set before the value is there": (
        """
event = threading.Event()
value = seen = None
def worker(name):
    global value, seen
    if name == "A":
        event.set()
        value = 1
    else:
        event.wait()
        seen = value
def invariant():
    assert seen == 1, f"B has seen {seen}"
""",
        "B has seen None",
    ),
    "a notification before the other thread waits": (
        """
condition = threading.Condition()
ready = False
def worker(name):
    global ready
    if name == "A":
        with condition:
            ready = True
            condition.notify()
    elif not ready:
        with condition:
            condition.wait()
def invariant():
    assert ready
""",
        "B waits for ever.",
    ),
    "two locks in opposite order": (
        """
left, right = threading.Lock(), threading.Lock()
def worker(name):
    first, second = (left, right) if name == "A" else (right, left)
    with first, second:
        pass
def invariant():
    assert not left.locked()
""",
        "A and B wait for ever.",
    ),
    "an error in one thread": (
        COUNTER
        + """
def worker(name):
    global counter
    counter += 1
    if counter == 2 and name == "A":
        raise ValueError("it is 2 already")
""",
        "A failed, line 14: ValueError: it is 2 already.",
    ),
}

DOUBLE_CHECKED = """
class Settings:
    def load(self):
        self.jobs = 4
settings = None
lock = threading.Lock()
def get():
    global settings
    if settings is None:
        with lock:
            if settings is None:
                {create}
    return settings
def worker(name):
    get().jobs
def invariant():
    assert settings.jobs == 4
"""
WRONG["an instance that others see before it is complete"] = (
    DOUBLE_CHECKED.format(create="settings = Settings(); settings.load()"),
    "AttributeError: 'Settings' object has no attribute 'jobs'",
)

# The jump at the end of such a loop needs a prefix, which Python 3.11 traces instead of the jump.
LONG_BODY = "            length = len(name)\n" * 300
WRONG["a dictionary that grows while a long loop goes through it"] = (
    """
items = {1: 1, 2: 2}
def worker(name):
    if name == "A":
        for item in items:
"""
    + LONG_BODY
    + """
    else:
        items[3] = 3
def invariant():
    assert len(items) == 3
""",
    "RuntimeError: dictionary changed size during iteration",
)

RIGHT = {
    "an instance that is complete before others see it": DOUBLE_CHECKED.format(
        create="new = Settings(); new.load(); settings = new"
    ),
    "a lock of the object": """
class Account:
    def __init__(self):
        self.balance = 0
        self.lock = threading.Lock()
    def deposit(self, amount):
        with self.lock:
            self.balance += amount
account = Account()
def worker(name):
    account.deposit(5)
def invariant():
    assert account.balance == 10
""",
    "a variable of an outer function that another thread assigns": """
lock = threading.Lock()
log = []
def make_counter():
    count = 0
    def increment(name):
        nonlocal count
        with lock:
            count += 1
        log.append(name)
    return increment, lambda: count
increment, get = make_counter()
def worker(name):
    increment(name)
def invariant():
    assert get() == 2, f"the count is {get()}"
""",
    "a lock that its owner takes again": """
counter = 0
lock = threading.RLock()
def increment():
    global counter
    with lock:
        counter += 1
def worker(name):
    with lock:
        increment()
def invariant():
    assert counter == 2
""",
    "a semaphore": """
counter = 0
semaphore = threading.Semaphore(1)
def worker(name):
    global counter
    with semaphore:
        counter += 1
def invariant():
    assert counter == 2
""",
    "a loop that waits for a variable": """
ready = False
data = seen = None
def worker(name):
    global ready, data, seen
    if name == "A":
        data = 1
        ready = True
    else:
        while not ready:
            time.sleep(0.1)
        seen = data
def invariant():
    assert seen == 1
""",
    "a queue": """
items = queue.Queue()
received = []
def worker(name):
    if name == "A":
        items.put(1)
    else:
        received.append(items.get())
def invariant():
    assert received == [1]
""",
    "a condition in a loop": """
condition = threading.Condition()
ready = False
def worker(name):
    global ready
    if name == "A":
        with condition:
            ready = True
            condition.notify()
    else:
        with condition:
            while not ready:
                condition.wait()
def invariant():
    assert ready
""",
    "a thread that ends itself": """
import sys
ended = []
def worker(name):
    ended.append(name)
    sys.exit(1)
def invariant():
    assert sorted(ended) == ["A", "B"]
""",
    "a method of a list, which is one step": """
items = []
def worker(name):
    items.append(name)
def invariant():
    assert sorted(items) == ["A", "B"]
""",
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_found(try_threads: Try, mistake: str) -> None:
    program, reason = WRONG[mistake]

    found = broken(try_threads(program, most=50))

    assert found
    assert any(reason in str(run.reason) for run in found)


@pytest.mark.parametrize("cure", RIGHT)
def test_a_right_program_holds_on_every_schedule(try_threads: Try, cure: str) -> None:
    runs = try_threads(RIGHT[cure])

    assert len(runs) > 1
    assert broken(runs) == []


_SMALL = [
    WRONG["an item of a dictionary"][0],
    WRONG["an update that is skipped while the lock is held"][0],
    WRONG["a list that is checked before it is used"][0],
    WRONG["two locks in opposite order"][0],
    WRONG["a variable of an outer function"][0],
]


@pytest.mark.parametrize("program", _SMALL[: scale(2, len(_SMALL))])
def test_fewer_schedules_end_in_every_way_in_which_all_of_them_end(
    try_threads: Try, tmp_path: Path, program: str
) -> None:
    reduced = try_threads(program)

    with trying(tmp_path / "mine.py", shared_fork_server()) as tried_file:
        full = list(run_every_schedule(tried_file.follow))

    assert len(reduced) < len(full)
    ends = {(run.reason, run.events[-1].state) for run in full}
    assert {(run.reason, run.events[-1].state) for run in reduced} == ends


def test_three_threads_and_two_rounds_are_run_if_the_bound_says_so(try_threads: Try) -> None:
    program = """
calls = []
def worker(name):
    calls.append(name)
def invariant():
    assert len(calls) == 6
"""

    (run,) = try_threads(program, most=1, bound=Bound(workers=3, rounds=2))

    assert run.workers == ("A", "B", "C")
    assert not run.is_broken


def test_the_attributes_of_a_thread_local_object_are_not_shared(try_threads: Try) -> None:
    runs = try_threads(
        COUNTER
        + """
own = threading.local()
def worker(name):
    global counter
    own.value = 0
    own.value += 1
    with lock:
        counter += own.value
"""
    )

    assert len(runs) == 2
    assert broken(runs) == []
    assert not any("own" in step.partition(":")[0] for run in runs for step in steps(run))


def test_an_object_in_a_thread_local_attribute_may_be_shared(try_threads: Try) -> None:
    runs = try_threads(
        """
shared = [0]
own = threading.local()
def worker(name):
    own.items = shared
    own.items[0] = own.items[0] + 1
def invariant():
    assert shared[0] == 2, "an update is lost"
"""
    )

    assert {run.reason for run in runs} == {None, "an update is lost"}


REFUSED = {
    "worker() starts a thread, but the lab starts the threads": (
        "def worker(name): threading.Thread(target=print).start()"
    ),
    "worker() does not end: line 5 is in a loop that uses nothing shared": (
        "def worker(name):\n  while True: pass"
    ),
    "waits for something other than a lock": (
        "import select\ndef worker(name): select.select([], [], [])"
    ),
    "Let worker() do less": "n = 0\ndef worker(name):\n  global n\n  for _ in range(999): n += 1",
    "waits for a lock with a time limit": (
        "lock = threading.Lock()\ndef worker(name): lock.acquire(timeout=1)"
    ),
    "use threading.Lock": (
        "import fcntl\ndef worker(name): fcntl.flock(open('x', 'w'), fcntl.LOCK_EX)"
    ),
    "worker() uses no variable that another thread changes": "def worker(name): pass",
    "worker() reads the clock": "def worker(name): time.time()",
    "uses functools.cached_property (config.value)": """
import functools
class Config:
    @functools.cached_property
    def value(self): return 1
config = Config()
def worker(name): config.value
""",
    "line 4: SyntaxError": "def worker(name:",
    "line 4: NameError": "unknown\ndef worker(name): pass",
    "line 5: ZeroDivisionError": "def worker(name): pass\ndef prepare(): 1 / 0",
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_cannot_be_stepped_is_refused_by_name(try_threads: Try, problem: str) -> None:
    with pytest.raises(CannotTry) as refused:
        try_threads(f"{REFUSED[problem]}\ndef invariant(): assert True is not None\n", most=3)

    assert problem in refused.value.message


def test_a_thread_cannot_be_killed(try_threads: Try) -> None:
    with pytest.raises(InvalidValues, match="--kill needs workers that are processes"):
        try_threads(COUNTER + "def worker(name): pass", bound=Bound(kill=True))


def test_the_verdict_of_the_command_is_about_threads(tool: Tool) -> None:
    (tool.cwd / "mine.py").write_text(HEAD + RIGHT["a lock of the object"])

    ran = tool("lab", "try", "mine.py", "--format", "text")

    text = " ".join(ran.text.split())
    assert ran.status == 0
    assert "2 schedules of 2 threads, 1 round each: 0 broken." in text
    assert "Not explored: more threads (--workers); more rounds (--rounds); switches inside" in text


def test_processes_are_told_how_to_become_threads(tool: Tool) -> None:
    (tool.cwd / "mine.py").write_text(
        COUNTER.replace("threading.Lock()", "None") + "def worker(name): pass\n"
    )

    assert 'write WORKERS = "threads"' in tool("lab", "try", "mine.py").error["message"]


def test_no_other_kind_of_workers_can_be_declared(tool: Tool) -> None:
    (tool.cwd / "mine.py").write_text('WORKERS = "coroutines"\ndef worker(name): pass\n')

    assert "line 1: WORKERS must be" in tool("lab", "try", "mine.py").error["message"]
