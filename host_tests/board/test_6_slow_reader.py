"""A client that does not read, on lwIP's memory of 8,000 bytes for all."""

import select
import socket

from host_tests.wire import codec

from .conftest import Deployed

STALL_S = 10
GONE_S = 240


def test_who_does_not_read_takes_lwips_memory_and_gives_it_back(board: Deployed) -> None:
    """Of its 8,000 bytes one socket takes 7,100, and then every send to another one is
    ENOMEM: see boards/RPI_PICO_W. The broker goes on trying, loses nothing, and serves them
    again when the one that does not read has gone (of which slirp tells lwIP late)."""
    resets = board.board.figures()["resets"]
    slow = board.connect("slow")
    slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.subscribe("flood", qos=0)
    quick = board.connect("quick")
    quick.subscribe("flood", qos=1)
    sender = board.connect("sender")
    sent = []
    for n in range(200):
        sent.append(b"%04d" % n * 125)
        sender.send(codec.publish("flood", sent[-1], 1, n + 1))
        if not select.select([quick.sock], [], [], STALL_S)[0]:
            break
        quick.receive("flood", sent[-1], 1)
        sender.expect(codec.Ack(codec.PUBACK, n + 1))
    else:
        raise AssertionError("nothing held anybody up: is lwIP another one?")
    slow.reset()
    board.clients.remove(slow)
    assert select.select([quick.sock], [], [], GONE_S)[0]
    quick.receive("flood", sent[-1], 1)
    sender.expect(codec.Ack(codec.PUBACK, len(sent)))
    assert board.board.figures()["resets"] == resets
