# ondemand.py - modules that are there only while somebody needs them: how a client comes
# in, how it subscribes, what $SYS says. They are half of the broker's text and a small
# part of its life, so where the heap is small they are loaded when they are called and
# forgotten when they have not been called for a while. (Where it is large, a collection
# would cost more than they do.) What is kept for later is no part of them. The control
# plane: allocates, and gives back.
import gc
import sys

from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON, const

_AFTER = const(10)  # tenths of a second
_LITTLE = const(16384)  # bytes: the largest module, and what one comes in with
SIZE = gc.mem_alloc() + gc.mem_free() if MICROPYTHON else 0  # bytes of the heap, at the start
IS_SMALL = 0 < SIZE < 1000000
taken = {}  # name: when it was called last
current = 0  # bytes of a small heap in use after the last collection here


def take(name, now):
    """The module slotmq.<name>, loaded if need be; to be used at once and not to be kept."""
    if IS_SMALL and MICROPYTHON and name not in taken and gc.mem_free() < _LITTLE:
        forget_all()  # so that it does not lie between what is forgotten later
    for _ in range(2):
        taken[name] = now
        try:
            __import__("slotmq." + name)
            return sys.modules["slotmq." + name]
        except MemoryError:
            forget_all()
    raise MemoryError


def tell(broker, what, conn, about):
    """The log hears of a connection (status/log_connections.py), if there is heap for it."""
    heap.lift()
    try:
        getattr(take("status.log_connections", broker.now), what)(broker, conn, about)
    except MemoryError:
        pass
    heap.drop()


def forget_all():
    """Let go of what was taken; whoever is being called stays until it returns.

    Not of protocol.connect: v5.connect, for which it makes space, would load it once more."""
    for name in list(taken):
        if name != "protocol.connect":
            forget(name)
    _collect()


def _collect():
    global current
    gc.collect()
    if MICROPYTHON:
        current = gc.mem_alloc()


def tick(now):
    """Several times a second: forget what nobody has needed for a while."""
    if not IS_SMALL:
        return
    for name in taken:
        if not 0 <= now - taken[name] < _AFTER:  # below 0: the clock's zero has moved since
            heap.lift()
            forget(name)
            _collect()
            heap.drop()
            tick(now)  # for the next one: the table has changed
            return


def forget(name):
    """Let go of the module slotmq.<name>, if it is there."""
    taken.pop(name, None)
    name = "slotmq." + name
    if sys.modules.pop(name, None):
        package, _, name = name.rpartition(".")
        delattr(sys.modules[package], name)


def borrow(name, function, *args):
    """Call a function of the module slotmq.<name>, and forget the module."""
    try:
        __import__("slotmq." + name)
        return getattr(sys.modules["slotmq." + name], function)(*args)
    finally:
        forget(name)
