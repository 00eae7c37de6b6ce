# heap.py - the lock on MicroPython's heap while the loop turns. Does not allocate.
#
# lock() and unlock() stand around the loop; lift() and drop() around whatever in it
# may allocate. They nest: a connection is taken over (lifted) and that is logged
# (lifted again). Without the lock, in a test or in an application's own call,
# lift() and drop() do nothing.
#
# Ctrl-C may come at any jump of the bytecode, and a heap that stayed locked would take the
# REPL with it. So between a change of the lock and the note of it there is no jump, and what
# unlock() does is looked up, not asked.
from slotmq.platform.runtime import const, heap_lock, heap_unlock

_LOCKED = const(0)
_LIFTED = const(1)
_HELD = const(2)  # is the lock on the heap now?
_EXCUSED = const(3)  # a MemoryError has left `with lifted`: it was no allocation under the lock
_state = bytearray(4)
_RELEASE = (int, heap_unlock)  # by _HELD


def lock():
    state = _state
    heap_lock()
    state[_HELD] = 1
    state[_LOCKED] += 1


def unlock():
    # Also where an exception passed a lift() that was not dropped.
    state = _state
    _RELEASE[state[_HELD]]()
    state[_LOCKED] -= 1
    state[_HELD] = 0
    state[_LIFTED] = state[_EXCUSED] = 0


def lift():
    if _state[_LIFTED] == 0 and _state[_LOCKED]:
        heap_unlock()
        _state[_HELD] = _state[_EXCUSED] = 0
    _state[_LIFTED] += 1


def settle():
    """Lift no more: an exception has come as far as the loop. -> was the lock lifted for it?"""
    was = _state[_LIFTED] or _state[_EXCUSED]
    _state[_EXCUSED] = 0
    if _state[_LIFTED]:
        _state[_LIFTED] = 1
        drop()
    return was


def drop():
    _state[_LIFTED] -= 1
    if _state[_LIFTED] == 0 and _state[_LOCKED]:
        heap_lock()
        _state[_HELD] = 1


class _Lifted:
    def __enter__(self):
        lift()

    def __exit__(self, kind, error, trace):
        if kind is MemoryError:
            _state[_EXCUSED] = 1
        drop()


lifted = _Lifted()  # `with heap.lifted:` for what may raise where no turn is under way
