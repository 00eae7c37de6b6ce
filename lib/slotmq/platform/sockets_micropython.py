# sockets_micropython.py - TCP on MicroPython, where the socket itself is the stream: it has
# readinto(buf, n), write(buf, off, n) and close(), and select.poll has ipoll. Allocates when a
# listener opens and for each accepted connection.
import select
import socket
import sys
import time as clock  # noqa: F401 - ticks_ms, ticks_diff
from errno import EAGAIN, ECONNABORTED

import micropython

_BACKLOG = 4096  # large: a client that the system turns away tries again only after a second
_TCP = 6
_IPV6 = 41
_V6ONLY = 26  # this and the one before are Linux's numbers
_EAFNOSUPPORT = 97
# The option's number depends on the port (rp2: 64). The unix port does not name it: 1 is Linux's.
_NODELAY = getattr(socket, "TCP_NODELAY", 1)
_UNIX = hasattr(socket, "AF_UNIX")


def half_close(stream):
    """MicroPython's sockets cannot shut down the write side."""


def make_poller(_broker):
    # With this buffer an OSError has its errno though the heap is locked. (Ports without
    # this function have such a buffer from the start.)
    if hasattr(micropython, "alloc_emergency_exception_buf"):
        micropython.alloc_emergency_exception_buf(100)
    poller = select.poll()
    poller.ipoll(0)  # allocates the tuple that all later calls reuse
    return poller


def open_listener(loop, settings, host, port, most, options):
    """Listen on one address; -> (host, port). OSError: it is not possible."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
    if address is None:  # the esp32 port gives no IPv6 address (modsocket.c)
        raise OSError(_EAFNOSUPPORT)
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if _UNIX and ":" in host:  # else Linux would bind the port in IPv4 too
            listener.setsockopt(_IPV6, _V6ONLY, 1)
        listener.bind(address)
        # On a board a client that waits uses one of the few connections, and the queue is in the
        # heap.
        listener.listen(_BACKLOG if _UNIX else min(_BACKLOG, loop.conns.slots))
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    if sys.platform == "rp2":
        from slotmq.platform.lwip import make

        make(loop, socket.socket)
    loop.listeners.add(
        listener, lambda: accept(listener, loop.lwip or settings.set_tcp_nodelay), most, options
    )
    return host, port


def accept(listener, nodelay):
    """The next connection as (stream, address), or None."""
    try:
        found = listener.accept()
    except OSError as error:
        if error.args[0] in (EAGAIN, ECONNABORTED):
            return None
        raise
    stream = found[0]
    stream.setblocking(False)
    if nodelay:
        try:
            stream.setsockopt(_TCP, getattr(socket, "TCP_NODELAY", _NODELAY), 1)
        except OSError:
            pass  # a port without it sends at once anyway
    return found
