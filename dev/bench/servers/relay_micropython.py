"""The ceiling for brokers on MicroPython; as relay_cpython.py, by MicroPython's socket calls.

micropython relay_micropython.py PORT PUBLISHERS SUBSCRIBERS
"""

import select
import socket
import sys

_READ = 65536
_IPPROTO_TCP = 6
_TCP_NODELAY = 1


def main(port, publishers, subscribers):
    """Accept everybody, then relay until a publisher leaves."""
    listener = socket.socket()
    listener.bind(socket.getaddrinfo("127.0.0.1", port)[0][-1])
    listener.listen(128)
    sinks = [_accept(listener) for _ in range(subscribers)]
    sources = [_accept(listener) for _ in range(publishers)]
    routes = {}
    poller = select.poll()
    for index, source in enumerate(sources):
        source.setblocking(False)  # else readinto waits until the buffer is full
        routes[source] = sinks[index : index + 1] if publishers == subscribers else sinks
        poller.register(source, select.POLLIN)
    relay(poller, routes)


def relay(poller, routes):
    """Pass on what comes."""
    buffer = bytearray(_READ)
    while True:
        for source, _ in poller.ipoll(-1):
            size = source.readinto(buffer, _READ)
            if not size:
                return
            for sink in routes[source]:
                sink.write(buffer, 0, size)


def _accept(listener):
    client = listener.accept()[0]
    client.setsockopt(_IPPROTO_TCP, _TCP_NODELAY, (1).to_bytes(4, sys.byteorder))
    return client


if __name__ == "__main__":
    main(*[int(argument) for argument in sys.argv[1:]])
