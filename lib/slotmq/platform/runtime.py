# runtime.py - which Python runs this, and what CPython lacks of MicroPython's module micropython:
# const(), and the lock on the heap. A small file of its own, since each module imports it. Other
# differences between the two are in platform/sockets.py and fast/__init__.py.
# ruff: noqa: F401 - others import from here
import sys

MICROPYTHON = sys.implementation.name == "micropython"

if MICROPYTHON:
    from micropython import const, heap_lock, heap_unlock
else:
    from slotmq.platform import arrays_cpython

    def const(value):
        return value

    def heap_lock():
        """CPython's heap has no lock."""

    def heap_unlock():
        """CPython's heap has no lock."""
