# dial_micropython.py - the contract of dial_cpython.py on MicroPython. A board asks the name
# server itself (dns.py), since getaddrinfo() waits for it; on a computer it does wait. Owns the
# queries that wait for an answer. Allocates.
import os
import socket
from errno import EINPROGRESS

from slotmq.constants import TCP
from slotmq.platform import ondemand

try:
    import network
except ImportError:  # a computer
    network = None  # type: ignore[assignment]

_asked = {}  # see find() of dns.py
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


def find(host, port, now):
    """The addresses of a host, or None: the name is being looked up, ask again; now: tenths of a
    second. OSError, ValueError: none."""
    if network and ":" not in host and not host.replace(".", "").isdigit():
        dns = ondemand.take("platform.dns", now)
        host = dns.find(_asked, host, network.ipconfig("dns"), now)
        if host is None:
            return None
    found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    if found[0][-1] is None:
        raise OSError("IPv6: this port has none")  # an ESP32
    return found


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
                sock.setsockopt(TCP, _NODELAY, 1)
            except OSError:
                pass  # a port without it sends at once anyway
        sock.connect(address)
    except OSError as error:
        if error.args[0] != EINPROGRESS:
            sock.close()
            raise
    return sock, address
