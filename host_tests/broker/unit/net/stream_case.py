"""A broker with a publisher and a subscriber, and streams that fail in every way."""

from broker_case import BrokerCase
from fakes import MOST
from packets import publish, subscribe

EAGAIN, ENOMEM, EBADF, EPIPE, ECONNRESET, ENOBUFS = 11, 12, 9, 32, 104, 105
SIZES = (0, 1, 50, 126, 127, 300, 620, 640, 1200, 2000)  # tx_bytes is 640
PIECES = list(range(1, 18))
PIECES += (63, 64, 65, 127, 128, 319, 320, 639, 640, 641)


def at_most(size):
    """A read or write function: so many bytes at most."""
    return lambda n: min(n, size)


def every(k, fault, size=MOST):
    """A write function: each k-th call fails, the others take so many bytes."""
    state = [0]

    def write(n):
        state[0] += 1
        if state[0] % k == 0:
            if fault is None:
                return None
            raise OSError(fault)
        return min(n, size)

    return write


def failing(errno):
    def call(n):
        raise OSError(errno)

    return call


def payload(size, number):
    return bytes([(number + i) & 255 for i in range(size)])


class StreamCase(BrokerCase):
    LIMITS = {"connections": 6, "message_bytes": 12544}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.publisher = self.world.client("publisher")
        self.other = self.world.client("other")
        self.subscribe(self.other, 2)

    def subscribe(self, client, qos):
        client.send(subscribe(1, "t/#", qos))
        self.world.turn(2)
        self.assertEqual(client.packets(), [b"\x90\x03\0\1" + bytes((qos,))])

    def settle(self, *clients):
        """Turn until no bytes move any more."""
        quiet = 0
        for _ in range(20000):
            before = [(len(c.stream.received), len(c.stream.sent)) for c in clients]
            self.world.turn()
            for client in clients:
                client.answer()
            after = [(len(c.stream.received), len(c.stream.sent)) for c in clients]
            quiet = quiet + 1 if before == after else 0
            if quiet > 5:
                return
        self.fail("bytes move without end")

    def publish_all(self, qos, *clients):
        """Messages of all sizes to t/a; -> what a subscriber of QoS 2 is to receive."""
        wanted = []
        for number, size in enumerate(SIZES):
            data = payload(size, number)
            self.publisher.send(publish("t/a", data, qos, number + 1))
            wanted.append((b"t/a", data, qos))
            self.settle(self.publisher, self.other, *clients)
        return wanted

    def check_other(self, wanted):
        self.assertEqual(self.other.messages, wanted)
        self.other.messages = []
