# measure_micropython.py BOARD - runs on 32-bit MicroPython with the board's heap.
#
# Loads the program, measures each file, and each table where it has a name, which is not
# in a packed program. A line: what, name, bytes.
import builtins
import gc
import sys

_BORROWED = ("conf", "start", "budget", "joining", "joining5", "subscribing", "subscribing5")
_BORROWED += ("systopics", "scram", "capacities", "policies")
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
    is_borrowed = name.split(".")[-1] in _BORROWED
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
    for name in ("version5", "five", "sysinfo"):
        try:
            __import__("slotmq." + name)
        except ImportError:
            continue


def tell_borrowed(name):
    """What a module takes that app.py borrows, and what is left when it is given back."""
    before = used()
    package = __import__("slotmq." + name)
    loaded = used() - before
    for each in _BORROWED:  # one may have loaded another
        if "slotmq." + each in sys.modules:
            del sys.modules["slotmq." + each]
            delattr(package, each)
    print("borrowed", "slotmq." + name, loaded)
    print("left", "slotmq." + name, used() - before)


def main(board):
    builtins.__import__ = traced
    __import__("slotmq.app")
    preset = __import__("slotmq_boards." + board + ".limits", None, None, ["LIMITS"])
    load_what_serves()
    for name in _BORROWED:
        tell_borrowed(name)
    tell_modules()
    try:
        import tables_micropython
    except ImportError:
        return  # packed: nobody knows the tables by their names
    tables_micropython.tell_tables(preset.LIMITS)


main(sys.argv[1])
print("done")
