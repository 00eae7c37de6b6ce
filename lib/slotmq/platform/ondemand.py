# ondemand.py - loads modules when they are called, such as those of CONNECT, SUBSCRIBE and $SYS,
# and in a small heap unloads them when they have not been called for a second. They are half of
# the broker's code and seldom run. (In a large heap they stay: a collection would cost more.) Such
# a module keeps no state. Owns which modules are loaded. Control plane: allocates, and frees.
import gc
import sys

from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON

_AFTER = 10  # tenths of a second
_LITTLE = 16384  # bytes: the largest module, and what loading it takes
SIZE = gc.mem_alloc() + gc.mem_free() if MICROPYTHON else 0  # bytes of the heap, at the start
IS_SMALL = 0 < SIZE < 1000000
loaded = {}  # name of a loaded module: when it was called last
in_use = 0  # bytes of a small heap in use after the last collection here


def take(name, now):
    """The module slotmq.<name>, loaded if necessary. The caller must not store it."""
    if IS_SMALL and MICROPYTHON and name not in loaded and gc.mem_free() < _LITTLE:
        forget_all()  # otherwise it might lie between modules that are unloaded later
    full = "slotmq." + name
    for _ in range(2):
        loaded[name] = now
        try:
            if full not in sys.modules:  # else __import__ looks for it among all interned names
                __import__("slotmq." + name)
            return sys.modules[full]
        except MemoryError:
            forget_all()
    raise MemoryError


def log_event(broker, what, conn, about):
    """Log an event of a connection (status/log_connections.py), if there is heap for it."""
    heap.lift()
    try:
        getattr(take("status.log_connections", broker.now), what)(broker, conn, about)
    except MemoryError:
        pass
    heap.drop()


def forget_all():
    """Unload all modules but protocol.connect; one that is being called stays in the heap until it
    returns. (If v5.connect needs the space, it would load protocol.connect again.)"""
    for name in list(loaded):
        if name != "protocol.connect":
            forget(name)
    _collect()


def _collect():
    global in_use
    gc.collect()
    if MICROPYTHON:
        in_use = gc.mem_alloc()


def tick(now):
    """Called several times a second: unload modules that were not called for a while."""
    if not IS_SMALL:
        return
    for name in loaded:
        if not 0 <= now - loaded[name] < _AFTER:  # below 0: the clock's zero has moved since
            heap.lift()
            for name in list(loaded):  # (a comprehension with `now` would allocate in each call)
                if not 0 <= now - loaded[name] < _AFTER:
                    forget(name)
            _collect()
            heap.drop()
            return


def forget(name):
    """Unload the module slotmq.<name>, if it is loaded."""
    loaded.pop(name, None)
    name = "slotmq." + name
    if sys.modules.pop(name, None):
        package, _, name = name.rpartition(".")
        delattr(sys.modules[package], name)


def borrow(name, function, *args):
    """Call a function of the module slotmq.<name>, then unload the module; on CPython it stays."""
    try:
        __import__("slotmq." + name)
        return getattr(sys.modules["slotmq." + name], function)(*args)
    finally:
        if MICROPYTHON:
            forget(name)
