# sockets_micropython.py - TCP on MicroPython, where the socket itself is the stream:
# readinto(buf, n), write(buf, off, n) and close() are its own, and select.poll has
# ipoll. Allocates when a listener opens and for each connection accepted.
import select
import socket
import sys
import time as clock  # noqa: F401 - ticks_ms, ticks_diff
from errno import EAGAIN, ECONNABORTED

import micropython

_BACKLOG = 4096  # whom the system must turn away tries again after a second
_TCP = 6
_IPV6 = 41
_V6ONLY = 26  # these two are Linux' numbers
_EAFNOSUPPORT = 97
# An option's number is the port's own (rp2: 64). The unix port has it on Linux, and names none.
_NODELAY = getattr(socket, "TCP_NODELAY", 1)
_UNIX = hasattr(socket, "AF_UNIX")


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
    if address is None:  # all that the esp32 port says of IPv6 (modsocket.c)
        raise OSError(_EAFNOSUPPORT)
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if _UNIX and ":" in host:  # or Linux would give it the port in IPv4 too
            listener.setsockopt(_IPV6, _V6ONLY, 1)
        listener.bind(address)
        # On a board who waits holds one of the few connections, and the queue lies in the heap.
        listener.listen(_BACKLOG if _UNIX else min(_BACKLOG, loop.conns.slots))
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    if sys.platform == "rp2":
        from slotmq.platform.lwip import make

        make(loop, socket.socket)
    loop.listeners.add(
        listener, lambda: accept(listener, loop.lwip or settings.set_tcp_nodelay), most
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
