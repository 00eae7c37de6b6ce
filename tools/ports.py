"""Finds a free TCP port on loopback for a process that is about to start.

Port 0 would not do: the kernel takes it from the ephemeral range, so before the process listens
the port may become the local end of an outgoing connection. So a port below that range is drawn
at random. To reserve it against other callers, also in other processes, this process binds the
UDP port of the same number.
"""

import os
import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"
# Below the ephemeral ports: from 32768 on Linux, from 49152 elsewhere (RFC 6335, section 6).
RANGE = range(20_000, 32_768)
_TRIES = 100
# A test may have seeded the generator of the module random.
_draw = random.SystemRandom()
_reserved: deque[int] = deque()  # file descriptors of the UDP sockets
_RESERVED_MAX = 200


def free_port() -> int:
    """A port that is free, and that no other caller was given lately. OSError: none was found."""
    for _ in range(_TRIES):
        port = _draw.choice(RANGE)
        if _reserve(port) and _is_free(port):
            return port
    raise OSError(f"none of {_TRIES} ports of {LOOPBACK} is free")


def _reserve(port: int) -> bool:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        udp.bind((LOOPBACK, port))
    except OSError:
        udp.close()
        return False
    _reserved.append(udp.detach())
    if len(_reserved) > _RESERVED_MAX:
        os.close(_reserved.popleft())
    return True


def _is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True
