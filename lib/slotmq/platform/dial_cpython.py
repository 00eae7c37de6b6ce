# dial_cpython.py - connections outwards on CPython, for bridges: a name is looked up in a thread
# of its own, since getaddrinfo() waits, and connect() does not wait. Owns the answers that are
# still to come. Allocates.
import os
import socket
from _thread import start_new_thread

from slotmq.platform.sockets_cpython import Stream

_asked = {}  # (host, port): [the answer of getaddrinfo(), or an OSError], empty until it comes


def host_name():
    """The name of this computer."""
    return socket.gethostname()


def noise():
    """A random number below 2 ** 24."""
    return int.from_bytes(os.urandom(3), "big")


def find(host, port, _now):
    """The addresses of a host, or None: the name is being looked up, ask again. OSError: none."""
    try:
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
    except OSError:
        pass  # it is a name
    answer = _asked.get((host, port))
    if answer is None:
        answer = _asked[host, port] = []
        start_new_thread(_look_up, (host, port, answer))
    if not answer:
        return None
    del _asked[host, port]
    if isinstance(answer[0], OSError):
        raise answer[0]
    return answer[0]


def _look_up(host, port, answer):
    try:
        answer.append(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
    except OSError as error:
        answer.append(error)


def dial(found, bind, nodelay):
    """Begin to connect to one of find()'s addresses, from the address `bind` if it is not None;
    -> (stream, address). OSError: it is not possible."""
    family, kind, _, _, address = found
    sock = socket.socket(family, kind)
    try:
        sock.setblocking(False)
        if nodelay:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if bind:
            sock.bind((bind, 0))
        sock.connect(address)
    except BlockingIOError:
        pass  # it is under way
    except OSError:
        sock.close()
        raise
    return Stream(sock), address
