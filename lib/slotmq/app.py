# app.py - the program: arguments, start, the line that says where it listens, orders.
#
# Owns what stands around a Broker in a process or on a board: which limits and
# settings it gets, the log, the pid file, the orders on standard input. The
# arguments are flat (tools/cli.py makes them). A start that is refused is one line
# on standard error and a status as mosquitto has it: 3 for what the user wrote, 1
# for what the machine could not do. Allocates at start and on orders.
import gc
import os
import sys
from errno import EADDRINUSE

import slotmq
from slotmq import log
from slotmq.broker import Broker
from slotmq.runtime import MICROPYTHON, const
from slotmq.settings import ConfError, Settings

_PORT = const(1883)
# Where to listen if nothing is said, and what no address means; IPv6 where there is.
_LOOPBACK = ("127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::")
_ALL_TYPES = const(127)
_ERROR = const(1)
_WARNING = const(2)
_NOTICE = const(4)
# Heap that must stay free beside the tables, for sockets, CONNECT, SUBSCRIBE, orders.
_SPARE = const(8192)
# Orders and the methods of Broker that carry them out. The end of the stream means
# that whoever gave orders has gone.
_ORDERS = {b"s": "stop", b"": "stop", b"r": "reload", b"c": "compact", b"t": "dump_tree"}


def main(argv, on_ready=None):
    """Run the broker until it is told to stop; the exit status."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # as on MicroPython, no line waits
    app = App()
    try:
        app.prepare(list(argv))
        app.start()
    except (ConfError, MemoryError, OSError, ValueError) as error:
        app.end()
        print("slotmq:", error, file=sys.stderr)
        return 3 if isinstance(error, ConfError) else 1
    try:
        if on_ready:
            on_ready(app.broker)
        app.broker.run()
    except KeyboardInterrupt:
        pass
    finally:
        app.end()
    return 0


def budget(board):
    """What each of the board's limits costs, as a table."""
    limits = _preset(board)
    total = ("tables", limits.ram_bytes(), "")
    return "\n".join(["%-16s%8d  %s" % row for row in limits.rows() + [total]])


class App:
    def __init__(self):
        self.options = {"--board": "HOST"}
        self.settings = Settings()
        self.limits = None
        self.broker = None
        self.pid_file = None

    # The start, in two steps: what needs no broker, and the broker.

    def prepare(self, argv):
        _parse(argv, self.options)
        self.limits = _preset(self.options["--board"])
        if "-c" in self.options:
            self.settings, self.limits = _conf("load", self.options["-c"], self.limits)
        _check_heap(self.limits)

    def start(self):
        self.broker = Broker(self.limits, self.settings)
        self.broker.on_reload = self.reload
        self.open_log()
        where = []
        for hosts, port, most in self.listeners():
            where += self.listen(hosts, port, most)
        self.write_pid()
        if "--orders" in self.options:
            stdin = sys.stdin.buffer
            self.broker.loop.watch(getattr(stdin, "raw", stdin), self.obey)
        print(_headline(self.options["--board"], ", ".join(where)))

    def open_log(self):
        mask = _ALL_TYPES if "-v" in self.options else self.settings.log_type
        log.open_all(self.settings.log_dest, mask)
        self.broker.log_mask = mask
        self.broker.log = log.write

    def listeners(self):
        """(hosts, port, max_connections): the configuration's, then the command line's."""
        found = [
            ((host,) if host else _EVERYWHERE, port, most)
            for host, port, most in self.settings.listeners
        ]
        host = self.options.get("--host")
        port = self.options.get("-p", 0 if found else _PORT)
        if host and not port:
            raise ConfError("--host: expected -p with it, since %s listens" % self.options["-c"])
        if port and port not in [listener[1] for listener in found]:
            found.append(((host,) if host else _LOOPBACK, port, 0))
        return found

    def listen(self, hosts, port, most):
        """Listen there; -> the addresses. Of two hosts the second, IPv6's, may be missing."""
        opened = []
        for host in hosts:
            address = ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)
            try:
                self.broker.listen(host, port, most)
                opened.append(address)
            except OSError as error:
                if host is hosts[0] or error.errno == EADDRINUSE:
                    raise OSError("cannot listen on %s: %s" % (address, error))
        return opened

    def write_pid(self):
        path = self.settings.pid_file
        if path:
            pid = self.options.get("--pid") or os.getpid()
            with open(path, "w") as file:
                file.write("%s\n" % pid)
            self.pid_file = path

    def end(self):
        """Close in order whatever is open, after a refused start too."""
        if self.broker:
            self.broker.stop()
            self.broker.run()
        if self.pid_file:
            try:
                os.remove(self.pid_file)
            except OSError:
                pass  # somebody else has
        log.close()

    # While it runs

    def obey(self, stream):
        act = getattr(self.broker, _ORDERS.get(stream.read(1), ""), None)
        if act:
            act()

    def reload(self):
        path = self.options.get("-c")
        if not path:
            return
        try:
            changed, refused = _conf("reload", path, self.limits, self.settings)
            self.open_log()
        except (ConfError, OSError) as error:
            log.write(_ERROR, "Not reloaded: %s" % error)
            return
        self.broker.apply_settings()
        log.write(_NOTICE, "Reloaded %s; changed: %s." % (path, ", ".join(changed) or "nothing"))
        if refused:
            log.write(_WARNING, "Only a new start changes: %s." % ", ".join(refused))


def _parse(words, options):
    while words:
        name = words.pop(0)
        if name in ("-v", "--orders"):
            options[name] = True
        elif name in ("-c", "-p", "--host", "--board", "--pid") and words:
            options[name] = words.pop(0)
        else:
            raise ConfError("%s: expected an option with its value" % name)
    port = options.get("-p")
    if port is not None:
        options["-p"] = int(port) if port.isdigit() else 0
        if not 0 < options["-p"] < 65536:
            raise ConfError("-p: expected a port from 1 to 65535")


def _preset(board):
    try:
        return __import__("slotmq_boards.%s.limits" % board, None, None, ["LIMITS"]).LIMITS
    except ImportError:
        raise ConfError("--board: expected the name of a folder in boards, not %s" % board)


def _conf(name, *args):
    # Call slotmq.conf.load or .reload, then give the module's heap back.
    import slotmq.conf

    try:
        return getattr(slotmq.conf, name)(*args)
    finally:
        del sys.modules["slotmq.conf"], slotmq.conf


def _check_heap(limits):
    gc.collect()
    if not MICROPYTHON:
        return
    need = limits.ram_bytes()
    free = gc.mem_free() - _SPARE
    if need > free:
        size, owner = max([(row[1], row[0]) for row in limits.rows()])
        raise MemoryError(
            "the tables take %d bytes of heap and may have %d; lower the limits of %s (%d)"
            % (need, free, owner, size)
        )


def _headline(board, where):
    bits = 64 if sys.maxsize >> 32 else 32
    heap = "heap without a limit"
    if MICROPYTHON:
        # With the collector's own tables: 3 bits for each block of 4 words.
        size = gc.mem_alloc() + gc.mem_free()
        heap = "heap %d KB" % ((size + size * 3 // (4 * bits) + 512) // 1024)
    python = "MicroPython" if MICROPYTHON else "CPython"
    version = "%d.%d.%d" % tuple(sys.implementation.version[:3])
    words = (slotmq.__version__, python, version, bits, board, heap, where)
    return "slotmq %s on %s %s (%d-bit), board %s, %s, listening on %s" % words
