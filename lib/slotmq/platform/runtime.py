# runtime.py - which Python runs this, and the names of module micropython that every module
# may use: const, and the lock on the heap. Other differences between the two are chosen once,
# at import, in platform/sockets.py and fast/__init__.py.
# ruff: noqa: F401 - others import from here
import sys

MICROPYTHON = sys.implementation.name == "micropython"

if MICROPYTHON:
    from micropython import const, heap_lock, heap_unlock
else:

    def const(value):
        return value

    def heap_lock():
        """CPython's heap has no lock."""

    def heap_unlock():
        """CPython's heap has no lock."""
