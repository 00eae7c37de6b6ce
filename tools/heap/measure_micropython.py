# measure_micropython.py BOARD HOST PORT - runs on 32-bit MicroPython with the board's heap.
#
# Loads the program, measures each file, makes each table and measures it (where the
# tables have names, that is, not in a packed program), then runs the broker as `slotmq
# run` does and tells, for each byte that comes on standard input, how much of the heap
# is in use. What is loaded only while serving ($SYS) is measured then. A line: what,
# name, bytes.
import builtins
import gc
import sys

_MODULES = 64  # at most
_load = __import__
_names = [None] * _MODULES
_sizes = [0] * _MODULES
_count = 0
_inner = 0  # bytes of the modules that the one being loaded has loaded


def used():
    gc.collect()
    return gc.mem_alloc()


def traced(name, *args):
    """__import__, with a note of what the module itself has added to the heap."""
    global _count, _inner
    if name in sys.modules or not name.startswith("slotmq"):
        return _load(name, *args)
    at = _count
    _count += 1
    _names[at] = name
    outer, _inner = _inner, 0
    before = used()
    module = _load(name, *args)
    whole = used() - before
    _sizes[at] = whole - _inner
    _inner = outer + whole
    return module


def tell_modules():
    for at in range(_count):
        print("module", _names[at], _sizes[at])


def tell_borrowed(name):
    """What a module takes that app.py borrows, and what is left when it is given back."""
    before = used()
    package = __import__("slotmq." + name)
    loaded = used() - before
    del sys.modules["slotmq." + name]
    delattr(package, name)
    print("borrowed", "slotmq." + name, loaded)
    print("left", "slotmq." + name, used() - before)


def tell_table(name, make):
    before = used()
    table = make()
    print("table", name, used() - before)
    return table


def tell_tables(limits):
    try:
        from slotmq import broker
    except ImportError:
        return  # packed
    from slotmq import version5  # noqa: F401 - else it is loaded with the Broker

    sessions = tell_table("Sessions", lambda: broker.Sessions(limits, False))
    subs = tell_table("Subscriptions", lambda: broker.Subscriptions(limits, False))
    tell_table("Connections", lambda: broker.Connections(limits, subs.pool, sessions.conn))
    for name in ("Messages", "Deliveries", "Retained"):
        tell_table(name, lambda: getattr(broker, name)(limits))  # noqa: B023
    sessions = subs = None
    settings = broker.Settings()
    settings.sys_interval = 0  # else this is where it is loaded
    tell_table("Broker", lambda: broker.Broker(limits, settings))


def tell_state(stream):
    if stream.read(1):
        tell_modules()
        print("state", "used", used())
        print("state", "free", gc.mem_free())
        print("done")


def main(board, host, port):
    print("state", "before", used())
    builtins.__import__ = traced
    from slotmq import app

    preset = __import__("slotmq_boards." + board + ".limits", None, None, ["LIMITS"])
    print("state", "loaded", used())
    tell_borrowed("conf")
    tell_borrowed("start")
    tell_tables(preset.LIMITS)

    def ready(broker):
        stdin = sys.stdin.buffer
        broker.loop.watch(stdin, tell_state)
        print("done")

    return app.main(["--board", board, "--host", host, "-p", port], on_ready=ready)


sys.exit(main(*sys.argv[1:]))
