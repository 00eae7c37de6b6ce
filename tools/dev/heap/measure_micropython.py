# measure_micropython.py BOARD - runs on 32-bit MicroPython with the board's heap.
#
# Loads the program, measures each file, and each table where it has a name, which is not
# in a packed program. A line: what, name, bytes.
import builtins
import gc
import sys

_BORROWED = ("config.mosquitto_conf", "app.start", "config.budget", "protocol.connect")
_BORROWED += ("v5.connect", "protocol.subscribe", "v5.subscribe", "status.sys_topics")
_BORROWED += ("v5.scram", "config.capacities", "config.policies")
# Packed, they have no folders; of two that are called alike the folder is in the name.
_PACKED = ["mosquitto_conf", "start", "budget", "connect", "v5_connect"]
_PACKED += ["subscribe", "v5_subscribe", "sys_topics", "scram", "capacities"]
_PACKED += ["policies"]
_MODULES = 96  # at most
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
    # What is only borrowed is measured by tell_borrowed().
    is_borrowed = name[7:] in _BORROWED or name[7:] in _PACKED
    if name in sys.modules or not name.startswith("slotmq") or is_borrowed:
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
        if not _sizes[at]:
            continue  # there is no module of that name in this form of the program
        print("module", _names[at], _sizes[at])


def load_what_serves():
    """What a broker loads when it is made, as it was written or packed."""
    for name in ("v5", "v5.extension", "status.sys_state", "sys_state"):
        try:
            __import__("slotmq." + name)
        except ImportError:
            continue


def tell_borrowed(name):
    """What a module takes that the program borrows, and what is left when it is given back."""
    before = used()
    __import__("slotmq." + name)
    loaded = used() - before
    for each in _BORROWED + tuple(_PACKED):  # one may have loaded another
        if sys.modules.pop("slotmq." + each, None):
            package, _, last = ("slotmq." + each).rpartition(".")
            delattr(sys.modules[package], last)
    print("borrowed", "slotmq." + name, loaded)
    print("left", "slotmq." + name, used() - before)


def main(board):
    builtins.__import__ = traced
    __import__("slotmq.app")
    preset = __import__("slotmq_boards." + board + ".limits", None, None, ["LIMITS"])
    load_what_serves()
    for name in _PACKED if "slotmq.core" in sys.modules else _BORROWED:
        tell_borrowed(name)
    tell_modules()
    try:
        import tables_micropython
    except ImportError:
        return  # packed: nobody knows the tables by their names
    tables_micropython.tell_tables(preset.LIMITS)


main(sys.argv[1])
print("done")
