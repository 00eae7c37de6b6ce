# heap.py - the lock on MicroPython's heap while the loop runs. Owns how deep it is locked and
# lifted. Does not allocate.
#
# A turn locks the heap and unlocks it (fast/pump_*.py), after an exception by unlock(). lift() and
# drop() enclose what may allocate in it. They nest: a session is taken over (lifted), and that is
# logged (lifted again). If the heap is not locked, as in a test or a call by the application, they
# only count.
#
# Ctrl-C may be raised at any jump of the bytecode, and a heap that stayed locked would block the
# REPL. So no jump is between a change of the lock and the assignment that records it, and unlock()
# selects its function by an index and not by `if`.
from slotmq.platform.runtime import MICROPYTHON, const, heap_lock, heap_unlock

_LOCKED = const(0)
_LIFTED = const(1)
_IS_LOCKED = const(2)  # is the heap locked now?
_EXCUSED = const(3)  # has a MemoryError left `with lifted`, where the heap was not locked?
_RELEASE = (int, heap_unlock)  # by _IS_LOCKED


def in_turn():
    """Is a turn under way? Between two turns the heap is neither locked nor lifted."""
    return _state[_LOCKED] or _state[_LIFTED]


def unlock():
    # Also after an exception between lift() and drop().
    state = _state
    _RELEASE[state[_IS_LOCKED]]()
    state[_LOCKED] -= 1
    state[_IS_LOCKED] = 0
    state[_LIFTED] = state[_EXCUSED] = 0


def lift():
    if _state[_LIFTED] == 0 and _state[_LOCKED]:
        heap_unlock()
        _state[_IS_LOCKED] = _state[_EXCUSED] = 0
    _state[_LIFTED] += 1


def settle():
    """Undo every lift(), after an exception that reached the loop. -> was the heap unlocked?"""
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
        _state[_IS_LOCKED] = 1


class _Lifted:
    def __enter__(self):
        lift()

    def __exit__(self, kind, error, trace):
        if kind is MemoryError:
            _state[_EXCUSED] = 1
        drop()


lifted = _Lifted()  # `with heap.lifted:` for what may raise outside a turn

if MICROPYTHON:
    _state = bytearray(4)
else:  # brokers of one program may run in several threads
    from slotmq.platform.threads_cpython import BytesOfThread

    _state = BytesOfThread(4)
    lift, drop = _state.lift, _state.drop
