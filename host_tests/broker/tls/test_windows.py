"""A window of 1 that opens by a PUBACK behind a message that fills the broker's read: the next
delivery leaves in the same turn. (Else each waits until the poller's 250 ms are over.)
"""

import socket
import time
from collections.abc import Callable
from pathlib import Path

from ...support.program import CONNECT, TIMEOUT_S
from ..wire import codec
from .client import Served, context

RX_BYTES = 1024
LIMITS = f"limit rx_bytes {RX_BYTES}", "limit tx_bytes 4096", "max_inflight_messages 1"
MESSAGES = 40
DELIVERY = len(codec.publish("a", b"x", qos=1, packet_id=1))


def told(sock: socket.socket, n: int) -> bytes:
    """The next n bytes."""
    found = b""
    while len(found) < n:
        found += sock.recv(n - len(found)) or b"the connection ended"
    return found


def test_it_is_filled_at_once(serve: Callable[..., Served], certs: Path) -> None:
    served = serve(*LIMITS)
    full = codec.publish("z", bytes(RX_BYTES - 6))
    assert len(full) == RX_BYTES
    plain = socket.create_connection(("127.0.0.1", served.port), TIMEOUT_S)
    publisher = socket.create_connection(("127.0.0.1", served.plain_port), TIMEOUT_S)
    with context(certs).wrap_socket(plain, server_hostname="localhost") as reader, publisher:
        reader.sendall(codec.connect("reader") + codec.subscribe(1, ("a", 1)))
        told(reader, 4 + 5)
        publisher.sendall(CONNECT)
        told(publisher, 4)
        for number in range(1, MESSAGES + 1):
            publisher.sendall(codec.publish("a", b"x", qos=1, packet_id=number))
        told(publisher, 4 * MESSAGES)
        began = time.monotonic()
        for _ in range(MESSAGES):
            delivery = told(reader, DELIVERY)
            reader.sendall(full + codec.ack(codec.PUBACK, int.from_bytes(delivery[5:7], "big")))
        assert time.monotonic() - began < MESSAGES * 0.2
