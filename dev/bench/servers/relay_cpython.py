"""A ceiling for brokers on CPython: reads, and writes what it read. It parses nothing.

    python relay_cpython.py PORT PUBLISHERS SUBSCRIBERS

The subscribers connect first. With as many of both they are pairs, else all of
the one side are connected with the single one on the other.
"""

import select
import socket
import sys

_READ = 65536


def main(port: int, publishers: int, subscribers: int) -> None:
    """Accept everybody, then relay until a publisher leaves."""
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    sinks = [_accept(listener) for _ in range(subscribers)]
    sources = [_accept(listener) for _ in range(publishers)]
    routes: dict[int, tuple[socket.socket, list[socket.socket]]] = {}
    poller = select.epoll()
    for index, source in enumerate(sources):
        pair = sinks[index : index + 1] if publishers == subscribers else sinks
        routes[source.fileno()] = (source, pair)
        poller.register(source.fileno(), select.EPOLLIN)
    relay(poller, routes)


def relay(
    poller: select.epoll, routes: dict[int, tuple[socket.socket, list[socket.socket]]]
) -> None:
    """Pass on what comes."""
    buffer = bytearray(_READ)
    view = memoryview(buffer)
    while True:
        for descriptor, _ in poller.poll():
            source, sinks = routes[descriptor]
            size = source.recv_into(buffer)
            if not size:
                return
            for sink in sinks:
                sink.sendall(view[:size])


def _accept(listener: socket.socket) -> socket.socket:
    client, _ = listener.accept()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
