# net_micropython.py - TCP on MicroPython, where the socket itself is the stream:
# readinto(buf, n), write(buf, off, n) and close() are its own, and select.poll has
# ipoll. Allocates when a listener opens and for each connection accepted.
import select
import socket
import time as clock  # noqa: F401 - ticks_ms, ticks_diff

import micropython

_BACKLOG = 128
_TCP = 6
_ENOMEM = 12
_EMFILE = 24
_NODELAY = 1
_IPV6 = 41
_V6ONLY = 26


def half_close(stream):
    """Say that nothing more will be written: sockets here cannot."""


def make_poller(_broker):
    # The loop runs with the heap locked; an OSError has its errno nevertheless. (Ports
    # without this function have such a buffer from the start.)
    if hasattr(micropython, "alloc_emergency_exception_buf"):
        micropython.alloc_emergency_exception_buf(100)
    poller = select.poll()
    poller.ipoll(0)  # makes the tuple that all later calls use again
    return poller


def open_listener(loop, settings, host, port, most):
    """Listen on one address; -> (host, port). OSError where that is not possible."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in host:  # or Linux would give it the port in IPv4 too
            listener.setsockopt(_IPV6, _V6ONLY, 1)
        listener.bind(address)
        listener.listen(max(16, min(_BACKLOG, loop.conns.slots)))
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    loop.doors.add(listener, lambda: accept(listener, settings.set_tcp_nodelay), most)
    return host, port


def accept(listener, nodelay):
    """The next connection as a stream, or None."""
    try:
        stream = listener.accept()[0]
    except OSError as error:
        if error.args[0] in (_EMFILE, _ENOMEM):
            raise
        return None
    stream.setblocking(False)
    if nodelay:
        try:
            stream.setsockopt(_TCP, _NODELAY, 1)
        except OSError:
            pass  # a port without it sends at once anyway
    return stream
