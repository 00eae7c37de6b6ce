# net_cpython.py - TCP on CPython: sockets and pollers with MicroPython's calls.
import select
import socket
import time

_BACKLOG = 128


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

    def __init__(self, sock):
        self.sock = sock
        self.fileno = sock.fileno
        self.close = sock.close
        self.readinto = sock.recv_into  # "nothing now" is an OSError here, as a board may have it
        self._send = sock.send

    def write(self, buf, off, n):
        try:
            return self._send(memoryview(buf)[off : off + n])
        except BlockingIOError:
            return None


class Poller:
    """register, modify, unregister and ipoll over epoll, or poll where there is none."""

    def __init__(self):
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._poll = self._epoll or select.poll()
        self._streams = {}

    def register(self, stream, mask):
        fd = stream.fileno()
        self._streams[fd] = stream
        self._poll.register(fd, mask)

    def modify(self, stream, mask):
        self._poll.modify(stream.fileno(), mask)

    def unregister(self, stream):
        fd = stream.fileno()
        del self._streams[fd]
        self._poll.unregister(fd)

    def ipoll(self, timeout_ms):
        events = self._poll.poll(timeout_ms / 1000 if self._epoll else timeout_ms)
        streams = self._streams
        return [(streams[fd], event) for fd, event in events]


def half_close(stream):
    """Say that nothing more will be written; what was, arrives though more is read."""
    try:
        stream.sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the peer has gone


def make_poller():
    return Poller()


def open_listener(loop, settings, host, port, most):
    """Listen on one address; -> (host, port). OSError where that is not possible."""
    info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, _, _, address = info[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    loop.doors.add(listener, lambda: accept(listener, settings.set_tcp_nodelay), most)
    return listener.getsockname()[:2]


def accept(listener, nodelay):
    """The next connection as a stream, or None."""
    try:
        sock = listener.accept()[0]
    except (BlockingIOError, ConnectionError):
        return None
    sock.setblocking(False)
    if nodelay:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            pass  # the peer may have gone already
    return Stream(sock)
