# runtime.py - which Python this is, and the four names of MicroPython's own that every module
# may use: const, and the lock on the heap. What else differs between the two is chosen once,
# at import, in platform/sockets.py and fast/__init__.py; no other module of the core asks.
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
