# runtime.py - which Python runs this, and what CPython lacks of MicroPython's module micropython:
# const(), the lock on the heap, and a state of that lock for each thread. Apart from all others,
# since each module imports it. Other differences between the two are in platform/sockets.py and
# fast/__init__.py.
# ruff: noqa: F401 - others import from here
import sys

MICROPYTHON = sys.implementation.name == "micropython"

if MICROPYTHON:
    from micropython import const, heap_lock, heap_unlock

    bytes_of_thread = bytearray
else:
    from _thread import _local

    def const(value):
        return value

    def heap_lock():
        """CPython's heap has no lock."""

    def heap_unlock():
        """CPython's heap has no lock."""

    class bytes_of_thread(_local):  # noqa: N801 - stands for bytearray
        """A bytearray for each thread, since brokers of a program may run in several."""

        def __init__(self, n):
            self._bytes = bytearray(n)

        def __getitem__(self, at):
            return self._bytes[at]

        def __setitem__(self, at, value):
            self._bytes[at] = value
