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
from slotmq.constants import EXCUSED, IS_LOCKED, LIFTED, LOCKED
from slotmq.platform.runtime import MICROPYTHON, heap_lock, heap_unlock

_RELEASE = (int, heap_unlock)  # by IS_LOCKED


def in_turn():
    """Is a turn under way? Between two turns the heap is neither locked nor lifted."""
    return _state[LOCKED] or _state[LIFTED]


def unlock():
    # Also after an exception between lift() and drop().
    state = _state
    _RELEASE[state[IS_LOCKED]]()
    state[LOCKED] -= 1
    state[IS_LOCKED] = 0
    state[LIFTED] = state[EXCUSED] = 0


def lift():
    if _state[LIFTED] == 0 and _state[LOCKED]:
        heap_unlock()
        _state[IS_LOCKED] = _state[EXCUSED] = 0
    _state[LIFTED] += 1


def settle():
    """Undo every lift(), after an exception that reached the loop. -> was the heap unlocked?"""
    was = _state[LIFTED] or _state[EXCUSED]
    _state[EXCUSED] = 0
    if _state[LIFTED]:
        _state[LIFTED] = 1
        drop()
    return was


def drop():
    _state[LIFTED] -= 1
    if _state[LIFTED] == 0 and _state[LOCKED]:
        heap_lock()
        _state[IS_LOCKED] = 1


class _Lifted:
    def __enter__(self):
        lift()

    def __exit__(self, kind, error, trace):
        if kind is MemoryError:
            _state[EXCUSED] = 1
        drop()


lifted = _Lifted()  # `with heap.lifted:` for what may raise outside a turn

if MICROPYTHON:
    _state = bytearray(4)
else:  # brokers of one program may run in several threads
    from slotmq.platform.threads_cpython import BytesOfThread

    _state = BytesOfThread(4)
    lift, drop = _state.lift, _state.drop
