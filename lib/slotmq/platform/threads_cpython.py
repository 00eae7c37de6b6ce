# threads_cpython.py - the state of heap.py's lock on CPython, where brokers of one program may run
# in several threads. Owns nothing; allocates 4 bytes for each thread.
from _thread import _local


class BytesOfThread(_local):
    """A bytearray for each thread."""

    def __init__(self, n):
        self._bytes = bytearray(n)

    # lift() and drop() of heap.py, where locking does nothing

    def lift(self):
        state = self._bytes
        if not state[1]:
            state[2] = state[3] = 0
        state[1] += 1

    def drop(self):
        state = self._bytes
        state[1] -= 1
        if not state[1] and state[0]:
            state[2] = 1

    def __getitem__(self, at):
        return self._bytes[at]

    def __setitem__(self, at, value):
        self._bytes[at] = value
