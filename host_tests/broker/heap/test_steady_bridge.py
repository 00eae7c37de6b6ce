"""Nothing is allocated while messages pass over a bridge, with and without prefixes."""

import socket
from contextlib import closing

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import TIMEOUT_S, Client, whole

from ..unit.support import watch
from .watched import Watched

ROUNDS = 60
HEAP = 256 * 1024  # the code is not packed


class Remote(Client):
    """The other broker: the bridge's connection, from the side of a server."""

    def __init__(self, listener: socket.socket) -> None:  # no call of Client's: it would connect
        self.sock, _ = listener.accept()
        self.sock.settimeout(TIMEOUT_S)
        self._send = whole
        self._bytes = bytearray()
        self._inbox = []
        self._watch = watch.Watch()
        self._watch.knows_all = False

    def read_packet(self, first: int) -> bytes:
        """What is behind the header of the next packet, which is short and begins so."""
        head = self.read_bytes(2)
        assert head[0] == first, head
        return self.read_bytes(head[1])

    def begin(self) -> None:
        assert b"MQTT\x84" in self.read_packet(0x10)
        self.send(b"\x20\x02\0\0")
        number = self.read_packet(0x82)[:2]
        self.send(b"\x90\x03" + number + b"\2")


@pytest.mark.parametrize("prefix", ["-", "there/"])
def test_messages_over_a_bridge_allocate_nothing(prefix: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    conf = f"bridge {listener.getsockname()[1]} {prefix}"
    with closing(listener), Watched(HEAP, conf) as watched:
        remote = Remote(listener)
        remote.begin()
        client = Client(watched.address)
        with closing(remote.sock), closing(client.sock):
            exchange(watched, client, remote, prefix.replace("-", ""))


def exchange(watched: Watched, client: Client, remote: Remote, there: str) -> None:
    client.connect(codec.connect("c"))
    client.subscribe("b/in", qos=1)
    with watched.locked() as seen:
        for k in range(ROUNDS):
            payload = b"x" * (1500 if k % 4 == 0 else 20)  # 1500: more than a buffer
            for qos in (0, 1, 2):
                client.publish("b/out", payload, qos)
                remote.receive(f"{there}b/out", payload, qos)
            remote.send(codec.publish(f"{there}b/in", payload, 1, 7))
            remote.expect(codec.Ack(codec.PUBACK, 7))
            client.receive("b/in", payload, 1)
    assert seen["changed"] == 0
    assert seen["turns"] > ROUNDS
