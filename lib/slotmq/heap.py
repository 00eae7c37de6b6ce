# heap.py - the lock on MicroPython's heap while the loop turns. Does not allocate.
#
# lock() and unlock() stand around the loop; lift() and drop() around whatever in it
# may allocate. They nest: a connection is taken over (lifted) and that is logged
# (lifted again). Without the lock, in a test or in an application's own call,
# lift() and drop() do nothing.
from slotmq.runtime import const, heap_lock, heap_unlock

_LOCKED = const(0)
_LIFTED = const(1)
_state = bytearray(2)


def lock():
    heap_lock()
    _state[_LOCKED] += 1


def unlock():
    # Also where an exception passed a lift() that was not dropped.
    _state[_LOCKED] -= 1
    if _state[_LIFTED] == 0:
        heap_unlock()
    _state[_LIFTED] = 0


def lift():
    if _state[_LIFTED] == 0 and _state[_LOCKED]:
        heap_unlock()
    _state[_LIFTED] += 1


def settle():
    """Lift no more: what was lifted has ended in an exception."""
    if _state[_LIFTED]:
        _state[_LIFTED] = 1
        drop()


def drop():
    _state[_LIFTED] -= 1
    if _state[_LIFTED] == 0 and _state[_LOCKED]:
        heap_lock()
