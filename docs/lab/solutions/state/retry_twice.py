"""The solution of the exercise retry-twice."""

import fcntl
from pathlib import Path

ORDERS = Path("orders")
REQUEST = "order-17"


def prepare() -> None:
    """Create an empty list of orders."""
    ORDERS.touch()


def worker(name: str) -> None:
    """Look for the order and book it under one lock."""
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if REQUEST not in ORDERS.read_text():
            book()


def book() -> None:
    """Add the order to the list."""
    with ORDERS.open("a") as orders:
        orders.write(f"{REQUEST}\n")


def invariant() -> None:
    """Check that the order is booked once."""
    booked = ORDERS.read_text().splitlines()
    assert booked == [REQUEST], f"the order is booked {len(booked)} times."
