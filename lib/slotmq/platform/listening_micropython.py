# listening_micropython.py - opens listeners on MicroPython, and makes the loop's poller. Loaded by
# control.py, on demand; owns nothing; allocates.
import select
import socket
import sys
import time as clock  # noqa: F401 - ticks_ms, ticks_diff

import micropython

from slotmq.constants import BACKLOG
from slotmq.platform import ondemand
from slotmq.platform.sockets_micropython import acceptor

_IPV6 = 41
_V6ONLY = 26  # this and the one before are Linux's numbers
_EAFNOSUPPORT = 97
_UNIX = hasattr(socket, "AF_UNIX")


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
        listener.listen(BACKLOG if _UNIX else min(BACKLOG, loop.conns.slots))
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    if sys.platform == "rp2":
        from slotmq.platform.lwip import make

        make(loop, socket.socket)
    # The function is made elsewhere: it would keep this module in the heap.
    accept = acceptor(loop, settings, listener)
    if options and options.get("tls"):
        accept = ondemand.take("net.tls", 0).accept(loop, accept, options)
    loop.listeners.add(listener, accept, most, options)
    return host, port
