"""A port of loopback for a process that is about to start.

The kernel would give one too (port 0), but of the range that it gives to clients as well:
between the question and the listener it may become the near end of somebody's connection.
So it is one that the kernel gives to nobody, at random. Until the listener comes others ask as
well: so this process holds the UDP port of the same number, which nobody else wants.
"""

import os
import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"
# Above the ports that services have by habit, below those of the kernel: 32768 upwards on
# Linux, 49152 elsewhere (RFC 6335, section 6).
RANGE = range(20_000, 32_768)
_TRIES = 100
# Not the module's own generator, which a test may have given a seed.
_draw = random.SystemRandom()
_held: deque[int] = deque()  # file descriptors
_MOST = 200


def free_port() -> int:
    """A port of loopback that nobody uses or has just been given. OSError if none was found."""
    for _ in range(_TRIES):
        port = _draw.choice(RANGE)
        if _hold(port) and _is_free(port):
            return port
    raise OSError(f"none of {_TRIES} ports of {LOOPBACK} is free")


def _hold(port: int) -> bool:
    held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        held.bind((LOOPBACK, port))
    except OSError:
        held.close()
        return False
    _held.append(held.detach())
    if len(_held) > _MOST:
        os.close(_held.popleft())
    return True


def _is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True
