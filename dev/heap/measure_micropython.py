# measure_micropython.py BOARD - runs on 32-bit MicroPython with the board's heap.
#
# Loads the code and measures each file and, unless the code is packed, each table. Prints lines
# of kind, name and bytes.
import builtins
import gc
import sys

_BORROWED = ("config.mosquitto_conf", "app.start", "config.budget", "protocol.connect")
_BORROWED += ("v5.connect", "protocol.subscribe", "v5.subscribe", "status.sys_topics")
_BORROWED += ("access.users", "access.pbkdf2", "access.login", "access.users_file")
_BORROWED += ("v5.scram", "config.capacities", "config.policies")
# Packed modules have no folders; the folder is in the name only where two have the same name.
_PACKED = ["mosquitto_conf", "start", "budget", "connect", "v5_connect"]
_PACKED += ["subscribe", "v5_subscribe", "sys_topics", "scram", "capacities"]
_PACKED += ["policies", "users", "login", "users_file"]
_PACKED += ["session_owners", "acl", "acl_file", "filters", "recheck_sessions", "denials"]
_MODULES = 96  # at most
_load = __import__
_names = [None] * _MODULES
_sizes = [0] * _MODULES
_count = 0
_inner = 0  # bytes of the modules that the current one has imported


def used():
    gc.collect()
    return gc.mem_alloc()


def traced(name, *args):
    """__import__, which also notes the heap that the module itself needs."""
    global _count, _inner
    # Borrowed modules are measured by print_borrowed().
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


def print_modules():
    for at in range(_count):
        if not _sizes[at]:
            continue  # the module does not exist in this form of the code
        print("module", _names[at], _sizes[at])


def load_late_modules():
    """Load what a broker loads when it is created, packed or not."""
    for name in ("net.loop", "v5", "v5.extension", "status.sys_state", "sys_state"):
        try:
            __import__("slotmq." + name)
        except ImportError:
            continue


def print_borrowed(name):
    """Print the heap that a borrowed module needs, and what is left after it is unloaded."""
    before = used()
    __import__("slotmq." + name)
    loaded = used() - before
    for each in _BORROWED + tuple(_PACKED):  # one may have imported another
        if sys.modules.pop("slotmq." + each, None):
            package, _, last = ("slotmq." + each).rpartition(".")
            delattr(sys.modules[package], last)
    print("borrowed", "slotmq." + name, loaded)
    print("left", "slotmq." + name, used() - before)


def main(board):
    builtins.__import__ = traced
    __import__("slotmq.app")
    preset = __import__("slotmq_boards." + board + ".limits", None, None, ["LIMITS"])
    load_late_modules()
    for name in _PACKED if "slotmq.core" in sys.modules else _BORROWED:
        print_borrowed(name)
    print_modules()
    try:
        import tables_micropython
    except ImportError:
        return  # packed code has no names of tables
    tables_micropython.print_tables(preset.LIMITS)


main(sys.argv[1])
print("done")
