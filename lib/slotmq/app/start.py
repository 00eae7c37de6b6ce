# start.py - how the program starts: arguments, limits and their heap, listeners, and
# the line that says what runs and where.
#
# Fills in an App (app/__init__.py), and is unloaded afterwards. Owns nothing; allocates.
# The arguments are -c FILE, -p PORT, --host ADDRESS, --board NAME, --pid ID, -v
# and --orders (one byte each on standard input). Raises ConfError or ValueError for an error in
# the configuration or the arguments, and OSError or MemoryError for an error of the system.
import gc
import os
import sys
from errno import EACCES, EADDRINUSE

import slotmq
from slotmq import app as program
from slotmq.broker import Broker
from slotmq.config.settings import ConfError
from slotmq.constants import WARNING
from slotmq.platform import ondemand
from slotmq.platform.ondemand import borrow
from slotmq.platform.runtime import MICROPYTHON

_PORT = 1883
# One text, and indexes of its words: MicroPython would intern each short text for ever.
_OPTIONS = "-v --orders -c -p --host --board --pid"
_VERBOSE, _TAKES_ORDERS, _CONF, _ON_PORT, _HOST, _BOARD, _PID = range(7)
# Where to listen if nothing is configured, and if a listener has no address; IPv6 if there is one.
_LOOPBACK = ("127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::")
# Bytes of heap that must stay free beside the tables, for sockets, CONNECT, SUBSCRIBE, orders;
# about 5 KB more are free when the start is unloaded.
_SPARE = 9600
_SPARE_WITH_JOURNAL = 17920  # the code that replays a journal needs more
_THRESHOLD = 2048  # bytes allocated until the next collection
# Objects that are made once, at the start
_MADE = """broker broker.conns broker.sessions broker.sessions.names broker.subscriptions
broker.subscriptions.routes broker.messages broker.messages.arena broker.deliveries
broker.retained broker.loop broker.loop.listeners broker.five broker.five.shares
broker.five.aliases broker.five.source broker.sys broker.users"""
_NAMES_ARENA = "names arena"
_OF_VERSION_5 = ("version 5", "aliases", "shares")  # rows of the budget
_BITS = 64 if sys.maxsize >> 32 else 32


def start(app, argv):
    """Make the broker of an App and open its listeners; -> the headline."""
    if MICROPYTHON:
        _be_private()
    if not MICROPYTHON or gc.mem_alloc() + gc.mem_free() > 1000000:
        return _start(app, argv)
    # Frequent collections keep lasting objects together in a small heap; else the gaps that
    # temporary ones leave would scatter them. (In a large heap a collection takes long.)
    gc.threshold(_THRESHOLD)
    try:
        return _start(app, argv)
    finally:
        gc.threshold(-1)


def _be_private():
    # Only the broker's user reads its files. (`os` has no modes there; a board has no users.)
    try:
        from ffi import open as library

        umask = library(None).func("i", "umask", "i")
        umask(umask(0o77) | 0o77)
    except (ImportError, OSError):
        pass


def _start(app, argv):
    options = _parse(argv)
    app.board = board = options.get(_BOARD, "HOST")
    app.verbose = _VERBOSE in options
    app.conf = options.get(_CONF)
    host = options.get(_HOST, "127.")
    is_127 = host[:4] == "127." and host.replace(".", "").isdigit()
    if not is_127 and host not in ("::1", "localhost"):
        app.is_public = True
        app.settings.allow_anonymous = False  # unless the configuration says otherwise
    lines = {}
    warnings = []
    try:
        _load_code()
        app.limits = own = _preset(board)
        if app.conf:
            app.settings, app.limits, lines, warnings = borrow(
                "config.mosquitto_conf", "load", app.conf, app.limits, app.is_public
            )
        if app.settings.connections:
            borrow("bridge.start", "load")
        rows = borrow("config.budget", "rows", app.limits, app.settings)
        if app.settings.mqtt_versions == 3:
            ondemand.forget("v5.extension")
            rows = [row for row in rows if row[0] not in _OF_VERSION_5]
        if app.settings.persistence:
            from slotmq.journal.writer import Journal  # noqa: F401

            rows.append(borrow("config.budget", "journal", app.limits))
    except MemoryError:
        raise MemoryError("%s: the broker's code does not fit" % _heap())
    listeners = _listeners(app.settings.listeners, options)
    spare = _SPARE_WITH_JOURNAL if app.settings.persistence else _SPARE
    text = _check_heap(rows, spare, app, own)
    del rows, own
    app.broker = _make(app, lines, text)
    app.broker.on_reload = app.reload
    borrow("app.log_dests", "start", app.broker, app.verbose)
    for text in warnings:
        app.broker.log(WARNING, text)
    where = []
    try:
        # Before the journal: where the address is taken, another broker may use that journal.
        for hosts, port, most, own in listeners:
            where += _listen(app, lines, hosts, port, most, own)
    except MemoryError:
        raise MemoryError(text)
    _write_pid(app, lines, options)
    for text in borrow("config.policies", "warnings", app.settings, listeners):
        app.broker.log(WARNING, text)
    if _TAKES_ORDERS in options:
        stdin = sys.stdin.buffer
        app.broker.loop.watch(getattr(stdin, "raw", stdin), app.obey)
    records = "record" in lines
    if app.settings.persistence or records:
        app.lines = lines
    _forget_what_made_it(app, records)
    return _headline(board, ", ".join(where))


def _make(app, lines, text):
    # The broker. text: of the MemoryError.
    try:
        return Broker(app.limits, app.settings)
    except MemoryError:
        raise MemoryError(text)
    except OSError as error:  # the password_file is the only file that Broker() reads
        what = "a file that can be read (%s)" % error
        raise ConfError(_wrong(lines["password_file"], "password_file", what))


def _forget_what_made_it(started, records):
    # The constructors of the tables, the board's preset and the modules loaded on demand are
    # not needed again: together they take about 8 KB of the heap.
    broker = started.broker
    if not ondemand.IS_SMALL:
        if not MICROPYTHON:
            ondemand.take("delivery.storms_cpython", 0).make(broker)
            broker.five and ondemand.take("v5.quick_properties_cpython", 0).make(broker)
        return
    ondemand.forget_all()
    for path in _MADE.split():
        made = broker
        for name in path.split(".")[1:]:
            made = getattr(made, name, None)
        # The Recorder makes Names later, and then removes these two constructors itself.
        if made and not (records and path.split(".")[-1] in _NAMES_ARENA.split()):
            type(made).__init__ = None  # `del` would leave its entry in the class's table
    for made in (broker.owners, broker.acl, started):  # not by name: so these can be short
        if made:
            type(made).__init__ = None
    program._start = program.App.__init__ = None
    limits = type(broker.limits)
    limits.rows = limits.ram_bytes = limits.hole_bytes = limits.replaced = limits.__init__ = None
    for name in list(sys.modules):
        if name.startswith("slotmq_boards"):
            del sys.modules[name]


def _parse(words):
    # -> {index in _OPTIONS: value}
    options = {}
    names = _OPTIONS.split()
    while words:
        name = words.pop(0)
        at = names.index(name) if name in names else -1
        if 0 <= at <= _TAKES_ORDERS:
            options[at] = True
        elif at > _TAKES_ORDERS and words:
            options[at] = words.pop(0)
        else:
            raise ConfError("%s: expected an option with its value" % name)
    port = options.get(_ON_PORT)
    if port is not None:
        options[_ON_PORT] = int(port) if port.isdigit() else 0
        if not 0 < options[_ON_PORT] < 65536:
            raise ConfError("-p: expected a port from 1 to 65535")
    return options


def _load_code():
    # Load code that stays before code that does not, and before the tables, which need large
    # pieces of heap.
    from slotmq.status.sys_state import Sys  # noqa: F401
    from slotmq.v5.extension import Version5  # noqa: F401


def _preset(board):
    try:
        return __import__("slotmq_boards.%s.limits" % board, None, None, ["LIMITS"]).LIMITS
    except ImportError:
        raise ConfError("--board: expected the name of a folder in boards, not %s" % board)


def _check_heap(rows, spare, app, own):
    # MemoryError: the tables do not fit. -> the text of the MemoryError to raise if their sum
    # fits, but the free heap is too fragmented for one of them.
    if ondemand.IS_SMALL:
        ondemand.forget_all()  # the modules that checked the limits
    gc.collect()
    free = gc.mem_free() if MICROPYTHON else 0
    if sys.platform == "esp32":
        free = borrow("platform.esp32_memory", "free")  # gc counts memory that Wi-Fi needs
    need = sum([row[1] for row in rows])
    text = "%s: the tables take %d bytes, and " % (_heap(), need)
    if MICROPYTHON and need + spare > free:
        lack = need + spare - free
        text += "%d are left for them beside %d for clients, " % (max(0, free - spare), spare)
        lower = borrow("config.lower_limits", "report", rows, lack, app.limits, own, app.settings)
        raise MemoryError("%s%d too few; %s" % (text, lack, lower))
    size, owner = max([(row[1], row[0]) for row in rows])
    text += "the %d that are free are in pieces too small for them; lower limits, first those of"
    return (text + " %s, which take %d") % (free, owner, size)


def _listeners(configured, options):
    # (hosts, port, max_connections, options): those of the configuration, then the command line's.
    found = [((each[0],) if each[0] else _EVERYWHERE,) + each[1:] for each in configured]
    host = options.get(_HOST)
    hosts = (host,) if host else _LOOPBACK
    port = options.get(_ON_PORT, _PORT if host or not found else 0)
    there = [listener[0] for listener in found if listener[1] == port]
    if host and hosts not in there and _EVERYWHERE not in there or port and not there:
        found.append((hosts, port, 0, {}))
    return found


def _wrong(place, key, expected):
    # The text of an error in a line of the configuration, found only when the value was used.
    return "%s: %s: expected %s" % (place, key, expected)


def _listen(app, lines, hosts, port, most, options=None):
    # -> the addresses. The second of two hosts is IPv6's and may be missing.
    opened = []
    for host in hosts:
        address = ("[%s]:%d" if ":" in host else "%s:%d") % (host, port) if port else host
        try:
            app.broker.listen(host, port, most, options)
            opened.append(address)
            most = None  # the next address shares this listener's quota
        except OSError as error:
            if host is hosts[0] or error.errno == EADDRINUSE:
                place = lines.get((None if hosts is _EVERYWHERE else host, port))
                if place:
                    what = "an address of this machine that is free, not %s (%s)"
                    if error.errno == EACCES:
                        what = "a port from 1024 on, or the right to use %s (%s)"
                    raise OSError(_wrong(place[1], place[0], what % (address, error)))
                raise OSError("cannot listen on %s: %s" % (address, error))
    return opened


def _write_pid(app, lines, options):
    path = app.settings.pid_file
    if path:
        pid = options.get(_PID) or os.getpid()
        try:
            with open(path, "w") as file:
                file.write("%s\n" % pid)
        except OSError as error:
            what = "a file that can be written (%s)" % error
            raise ConfError(_wrong(lines["pid_file"], "pid_file", what))
        app.pid_file = path


def _heap():
    if not MICROPYTHON:
        return "heap without a limit"
    # Including the collector's own tables: 3 bits for each block of 4 words.
    size = gc.mem_alloc() + gc.mem_free()
    return "heap %d KB" % ((size + size * 3 // (4 * _BITS) + 512) // 1024)


def _headline(board, where):
    python = "MicroPython" if MICROPYTHON else "CPython"
    version = "%d.%d.%d" % tuple(sys.implementation.version[:3])
    words = (slotmq.__version__, python, version, _BITS, board, _heap(), where)
    return "slotmq %s on %s %s (%d-bit), board %s, %s, listening on %s" % words
