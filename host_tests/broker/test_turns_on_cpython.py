"""fast/turn_cpython.py does in the most common turns what the loop would have done.

The same bytes go to two brokers, one with a plain poller and one with Turns, which serves
these turns itself. Their clients must get the same, and their counters must be equal.
"""

import errno
import random
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from slotmq import Broker, Limits, Settings
from slotmq.fast.turn_cpython import Turns
from slotmq.net.loop import Loop
from slotmq.platform.sockets_cpython import Poller, accept, clock

from .unit.support.invariants import left
from .wire import codec
from .wire5 import codec as codec5

TOPICS = ("a", "a/b", "two", "nobody", "new", "$x", "$SYS/x", "t" * 60)
SIZES = (0, 1, 20, 121, 122, 123, 124, 140, 400, 473, 900)
SEEDS = range(6)
STEPS = 300
LARGE = 16000
PINGREQ, PINGRESP = b"\xc0\0", b"\xd0\0"
OF_3 = (4, 4, 4)  # the levels of the publisher and the subscribers
OF_5 = (5, 5, 5)
MIXED = ((5, 4, 5), (4, 5, 4), (5, 4, 4), (4, 5, 5))


class Scene:
    """A broker in this process, with a publisher and subscribers."""

    def __init__(
        self,
        make_poller: Callable[[Broker], Poller],
        tx_bytes: int = 512,
        levels: tuple[int, int, int] = OF_3,
    ) -> None:
        sizes = {"tx_bytes": tx_bytes, "rx_bytes": tx_bytes, "max_packet": LARGE + 100}
        settings = Settings()
        settings.set_tcp_nodelay = True
        self.broker = Broker(Limits(connections=8, message_bytes=1 << 18, **sizes), settings)
        self.poller = make_poller(self.broker)
        self.broker.loop = Loop(self.broker, self.poller, clock)
        self.address = self.broker.listen("127.0.0.1", 0)
        self.publisher = self.connect("p", (), levels[0])
        self.subscribers = [
            self.connect("x", ("a", "two", "t" * 60, "$x", "$SYS/x"), levels[1]),
            self.connect("y", ("+/b", "two"), levels[2]),
        ]

    def connect(self, name: str, filters: tuple[str, ...], level: int) -> socket.socket:
        of_level = codec5 if level == 5 else codec
        client = socket.create_connection(self.address)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
        client.send(of_level.connect(name))
        for topic_filter in filters:
            client.send(of_level.subscribe(1, (topic_filter, 1)))
        self.turn()
        return client

    def turn(self, times: int = 3) -> None:
        for _ in range(times):
            self.broker.turn(0)
            assert not list(left(self.broker))

    def publish(self, *parts: bytes) -> list[bytes]:
        """Send it. -> what each client got"""
        for part in parts:
            self.publisher.sendall(part)
            self.turn()
        return [self.received(client) for client in (self.publisher, *self.subscribers)]

    def received(self, client: socket.socket) -> bytes:
        """What has come before the answer to a ping."""
        client.sendall(PINGREQ)
        data = b""
        while not data.endswith(PINGRESP):
            self.turn(1)
            data += waiting(client)
        return data

    def wait_until_left(self, count: int) -> None:
        while self.broker.conns.count != count:
            self.turn(1)

    def counts(self) -> list[int]:
        stats = list(self.broker.stats)
        stats[3] += self.broker.conns.counts[1]  # the timers do this
        return stats

    def close(self) -> None:
        for client in (self.publisher, *self.subscribers):
            client.close()
        self.broker.stop()
        self.broker.run()


def waiting(client: socket.socket) -> bytes:
    data = b""
    try:
        while piece := client.recv(1 << 16):
            data += piece
    except BlockingIOError:
        pass
    return data


def chunk(numbers: random.Random, levels: tuple[int, int, int]) -> bytes:
    """What a client may send at once."""
    topic = numbers.choice(TOPICS)
    payload = numbers.randbytes(numbers.choice(SIZES))
    of_level = codec5 if levels[0] == 5 else codec
    one = of_level.publish(topic, payload)
    kinds = {
        "one": one,
        "two": one + of_level.publish("a", b"second"),
        "and a ping": one + PINGREQ,
        "ping": PINGREQ,
        "qos 1": of_level.publish(topic, payload, qos=1, packet_id=7),
        "retained": of_level.publish(topic, payload, retain=True),
        "to itself": of_level.subscribe(2, ("a", 0)),
        "not to itself": of_level.unsubscribe(3, "a"),
    }
    if levels != OF_3:
        # With version 5 it takes a packet id outside of the fast path. Whether a cut packet takes
        # that depends on the system.
        del kinds["to itself"]
    if levels[0] == 5:
        kinds["properties"] = codec5.publish(topic, payload, user=[("a", "b")])
    return bytes(kinds[numbers.choice(["one"] * 12 + list(kinds))])


@pytest.mark.parametrize("seed", SEEDS)
def test_both_do_the_same(seed: int) -> None:
    numbers = random.Random(seed)
    levels = (OF_3, OF_5, *MIXED)[seed]
    with ExitStack() as stack:
        scenes = [Scene(lambda _: Poller(), levels=levels), Scene(Turns, levels=levels)]
        for scene in scenes:
            stack.callback(scene.close)
        for _ in range(STEPS):
            data = chunk(numbers, levels)
            cut = numbers.randrange(len(data)) if numbers.random() < 0.1 else 0
            by_loop, by_itself = [scene.publish(data[:cut], data[cut:]) for scene in scenes]
            assert by_itself == by_loop, data
            assert scenes[1].counts() == scenes[0].counts()


@pytest.mark.parametrize("level", [4, 5])
def test_the_loop_does_not_see_a_single_message(level: int) -> None:
    scene = Scene(Turns, levels=(level, level, level))
    lone = (codec5 if level == 5 else codec).publish("a", b"1")
    scene.publish(lone)
    scene.publisher.sendall(lone)
    got = b""
    while not got:
        assert not scene.poller.ipoll(1)
        got += waiting(scene.subscribers[0])
    assert got == lone
    scene.close()


@pytest.mark.parametrize("poller", [lambda _: Poller(), Turns], ids=["plain", "turns"])
@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("window", [1, 5])
def test_a_window_that_opens_is_filled_in_the_same_turn(
    poller: Callable[[Broker], Poller], level: int, qos: int, window: int
) -> None:
    """What comes after an acknowledgement does not wait for another event (Scene.turn)."""
    scene = Scene(poller, levels=(4, level, 4))
    scene.broker.settings.max_inflight_messages = window
    scene.broker.apply_settings()
    reader = scene.subscribers[0]
    reader.sendall((codec5 if level == 5 else codec).subscribe(9, ("a", 2)))
    scene.received(reader)
    sent = [number.to_bytes(2, "big") for number in range(20)]
    for number, payload in enumerate(sent, 1):
        scene.publisher.sendall(codec.publish("a", payload, qos=qos, packet_id=number))
        if qos == 2:
            scene.publisher.sendall(b"\x62\2" + number.to_bytes(2, "big"))
    got: list[bytes] = []
    buffer = bytearray()
    while len(got) < len(sent) or scene.broker.deliveries.count[0]:
        scene.turn(1)
        buffer += waiting(reader)
        while buffer and len(buffer) >= 2 + buffer[1]:
            packet, buffer = bytes(buffer[: 2 + buffer[1]]), buffer[2 + buffer[1] :]
            if packet[0] >> 4 == 3:
                got.append(packet[-2:])
                packet_id = packet[5:7]
                reader.sendall((b"\x40\2" if qos == 1 else b"\x50\2") + packet_id)
            else:
                reader.sendall(b"\x70\2" + packet[2:4])
    assert got == sent
    scene.close()


BAD = (
    b"\x30\0",
    b"\x30\1a",
    b"\x30\2\0\0",
    b"\x30\x80\0",
    b"\x30\3\0\2a",  # a topic name longer than the packet
    b"\x30\x83\0\0\1a",  # a length in more bytes than it needs
    codec.publish("a", bytes(LARGE + 200)),  # more than max_packet
)


@pytest.mark.parametrize("data", BAD, ids=lambda data: data[:8].hex())
def test_a_bad_publish_ends_the_connection(data: bytes) -> None:
    scene = Scene(Turns, tx_bytes=2 * LARGE)
    scene.publish(codec.publish("a", b"this one is good"))
    scene.publisher.sendall(data)
    scene.wait_until_left(len(scene.subscribers))
    assert not waiting(scene.subscribers[0])
    scene.close()


def test_a_message_after_a_partial_write_is_complete() -> None:
    scene = Scene(Turns, tx_bytes=LARGE + 100)
    sent: list[bytes] = []
    while not scene.broker.conns.out[1]:
        sent.append(len(sent).to_bytes(4, "big") * (LARGE // 4))
        scene.publisher.sendall(codec.publish("a", sent[-1]))
        scene.turn()
    buffer = bytearray()
    while scene.broker.conns.out[1]:
        buffer += waiting(scene.subscribers[0])
        scene.turn()
    buffer += scene.received(scene.subscribers[0])
    got = []
    while packet := codec.take(buffer):
        if isinstance(packet, codec.Publish):
            got.append(packet.payload)
    assert got == sent[: len(got)]
    assert len(got) >= len(sent) - 1
    assert not buffer
    scene.close()


def test_a_receiver_that_has_gone_is_closed_by_the_loop() -> None:
    scene = Scene(Turns)
    scene.publish(codec.publish("a", b"1"))
    gone = scene.subscribers[0]
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    scene.publisher.sendall(codec.publish("a", b"2"))
    gone.close()  # with an RST
    scene.turn()
    scene.publisher.sendall(codec.publish("a", b"3"))
    scene.wait_until_left(2)
    scene.close()


class Listener:
    """A socket whose accept() fails."""

    def __init__(self, error: int) -> None:
        self.error = error

    def _accept(self) -> None:
        raise OSError(self.error, "")


def test_accept_returns_none_only_if_no_connection_waits() -> None:
    """Other errors last; they stop the listener until the next tick (net/listeners.py)."""
    for error in (errno.EAGAIN, errno.ECONNABORTED):
        assert accept(Listener(error), True) is None
    for error in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
        with pytest.raises(OSError):
            accept(Listener(error), True)
