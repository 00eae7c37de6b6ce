# sockets_micropython.py - TCP on MicroPython, where the socket itself is the stream: it has
# readinto(buf, n), write(buf, off, n) and close(), and select.poll has ipoll. Allocates for each
# accepted connection. What only the start needs is in listening_micropython.py.
import socket
from errno import EAGAIN, ECONNABORTED

from slotmq.constants import TCP

# The option's number depends on the port (rp2: 64). The unix port does not name it: 1 is Linux's.
_NODELAY = getattr(socket, "TCP_NODELAY", 1)


def half_close(stream):
    """MicroPython's sockets cannot shut down the write side."""


def acceptor(loop, settings, listener):
    """What accepts the connections of a listener."""
    return lambda: accept(listener, loop.lwip or settings.set_tcp_nodelay)


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
            stream.setsockopt(TCP, getattr(socket, "TCP_NODELAY", _NODELAY), 1)
        except OSError:
            pass  # a port without it sends at once anyway
    return found
