"""A port of loopback for a process that is about to start.

The kernel would give one too (port 0), but of the range that it gives to clients as well:
between the question and the listener it may become the near end of somebody's connection.
So it is one that the kernel gives to nobody. Each process begins anywhere and takes one after
the other: the listener comes a while after the question, and others ask in between.
"""

import itertools
import random
import socket

LOOPBACK = "127.0.0.1"
# Above the ports that services have by habit, below those of the kernel: 32768 upwards on
# Linux, 49152 elsewhere (RFC 6335, section 6).
RANGE = range(20_000, 32_768)
_TRIES = 100
# Not the module's own generator, which a test may have given a seed.
_turn = itertools.count(random.SystemRandom().randrange(len(RANGE)))


def free_port() -> int:
    """A port of loopback that nobody uses at the moment. OSError if none was found."""
    for _ in range(_TRIES):
        port = RANGE[next(_turn) % len(RANGE)]
        if _is_free(port):
            return port
    raise OSError(f"none of {_TRIES} ports of {LOOPBACK} is free")


def _is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True
