# dial_micropython.py - the contract of dial_cpython.py on MicroPython, whose getaddrinfo() waits
# for the name server. Owns nothing. Allocates.
import os
import socket
from errno import EINPROGRESS

_TCP = 6
_NODELAY = getattr(socket, "TCP_NODELAY", 1)


def host_name():
    """A name that no other board has; on a computer `micropython`."""
    try:
        from machine import unique_id

        return "".join(["%02x" % byte for byte in unique_id()])
    except (ImportError, AttributeError):
        return "micropython"


def noise():
    """A random number below 2 ** 24."""
    return int.from_bytes(os.urandom(3), "big")


def find(host, port):
    """The addresses of a host. OSError: none."""
    return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)


def dial(found, bind, nodelay):
    """Begin to connect to one of find()'s addresses, from the address `bind` if it is not None;
    -> (stream, address). OSError: it is not possible."""
    family, kind, _, _, address = found
    sock = socket.socket(family, kind)
    try:
        sock.setblocking(False)
        if bind:
            sock.bind(socket.getaddrinfo(bind, 0)[0][-1])
        if nodelay:
            try:
                sock.setsockopt(_TCP, _NODELAY, 1)
            except OSError:
                pass  # a port without it sends at once anyway
        sock.connect(address)
    except OSError as error:
        if error.args[0] != EINPROGRESS:
            sock.close()
            raise
    return sock, address
