# sockets_cpython.py - TCP on CPython: streams, a poller and a clock with MicroPython's methods.
# Allocates.
import os
import select
import socket
import stat
import time

from slotmq.constants import BACKLOG
from slotmq.platform import ondemand

_Socket = socket.SocketType  # socket.socket without what that adds in Python
_family = _Socket.family.__get__
_BIND_TO_DEVICE = getattr(socket, "SO_BINDTODEVICE", 25)  # Linux
MOST_EVENTS = 84  # of one poll, 12 bytes each: malloc has a free list for such a block


class Clock:
    """MicroPython's time.ticks_ms and ticks_diff; here the count never wraps."""

    @staticmethod
    def ticks_ms():
        return time.monotonic_ns() // 1000000

    @staticmethod
    def ticks_diff(now, before):
        return now - before


clock = Clock


class Stream:
    """A TCP connection; OSError where it has failed."""

    is_plain = True  # no WebSocket

    def __init__(self, sock):
        self.sock = sock
        self.fileno = sock.fileno
        self.close = sock.close
        self.readinto = sock.recv_into  # raises OSError for "nothing now", as some boards do
        self.send = sock.send

    def give_back(self, data):
        """The next readinto() returns these bytes, which were read before."""

        def again(buf, n):
            assert len(data) <= n
            self.readinto = self.sock.recv_into
            buf[: len(data)] = data
            return len(data)

        self.readinto = again

    def write(self, buf, off, n):
        try:
            return self.send(memoryview(buf)[off : off + n])
        except BlockingIOError:
            return None


class Poller:
    """register, modify, unregister and ipoll over epoll, or poll where there is none."""

    def __init__(self):
        self.streams = {}  # descriptor -> stream
        if hasattr(select, "epoll"):
            self._poll = select.epoll()
            self.wait = self._poll.poll  # (seconds, events) at most
        else:
            self._poll = select.poll()
            self.wait = lambda seconds, _most: self._poll.poll(seconds * 1000)

    def register(self, stream, mask):
        fd = stream.fileno()
        self._poll.register(fd, mask)
        self.streams[fd] = stream

    def modify(self, stream, mask):
        self._poll.modify(stream.fileno(), mask)

    def unregister(self, stream):
        fd = stream.fileno()
        if self.streams.pop(fd, None):  # as MicroPython's, it accepts one that is not registered
            self._poll.unregister(fd)

    def close(self):
        if hasattr(self._poll, "close"):
            self._poll.close()

    def ipoll(self, timeout_ms):
        return self.with_streams(self.wait(timeout_ms / 1000, MOST_EVENTS))

    def with_streams(self, events):
        streams = self.streams
        return [(streams[fd], event) for fd, event in events]


def half_close(stream):
    """Shut down the write side; what was written still arrives, while input is read."""
    try:
        stream.sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the peer has gone


def open_listener(loop, settings, host, port, most, options):
    """Listen on one address; -> (host, port). OSError: it is not possible.

    A host with a slash is the path of a unix domain socket."""
    if "/" in host:
        listener = UnixListener(host)
        _add(loop, listener, lambda: accept(listener, False, (host, 0)), most, options)
        return host, 0
    info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, _, _, address = info[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        interface = options and options.get("bind_interface")
        if interface:
            listener.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, interface.encode() + b"\0")
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    _add(loop, listener, lambda: accept(listener, settings.set_tcp_nodelay), most, options)
    return listener.getsockname()[:2]


def _add(loop, listener, accept_one, most, options):
    if options and options.get("tls"):
        accept_one = ondemand.take("net.tls", 0).accept(loop, accept_one, options)
    loop.listeners.add(listener, accept_one, most, options)


class UnixListener(socket.socket):
    """A listening unix domain socket, whose path disappears with it."""

    def __init__(self, path):
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self.path = None
        try:
            if _is_left_over(path):
                os.unlink(path)
            self.bind(path)
            self.path = path
            self.listen(BACKLOG)
            self.setblocking(False)
        except OSError:
            self.close()
            raise

    def close(self):
        super().close()
        if self.path:
            try:
                os.unlink(self.path)
            except OSError:
                pass  # it has been removed already
            self.path = None


def _is_left_over(path):
    # Is there the socket of a process that was killed, so that nobody listens?
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(path)
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False


def accept(listener, nodelay, where=None):
    """The next connection as (stream, address), or None. where: the address, if the system does
    not tell it."""
    try:
        fd, address = listener._accept()
    except (BlockingIOError, ConnectionError):
        return None
    sock = _Socket(_family(listener), socket.SOCK_STREAM, 0, fd)
    sock.setblocking(False)
    if nodelay:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            pass  # the peer may have gone already
    return Stream(sock), where or address
