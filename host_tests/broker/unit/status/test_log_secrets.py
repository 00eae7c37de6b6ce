"""No line of the log, nor $SYS/broker/log, has bytes of another connection; none has a password, a
will or a payload.

Neighbours send canaries in every turn, so that the buffers that connections share are full of
them, while strangers provoke each kind of fault: over TCP and WebSocket, in 3.1.1 and 5.0, whole
and in pieces, and with single bytes changed."""

import unittest

import scram_client
import scratch
from packets import PINGREQ, connect, packet, publish, read_publish, subscribe
from packets5 import publish as publish5
from web_client import MASK, PING, TEXT, Web, frame, request

from slotmq import Limits
from slotmq.access import pbkdf2
from slotmq.app import log_dests
from slotmq.platform import log

# "user" with the password "pencil" [RFC 7677, 3]
FILE = (
    "user:4096:W22ZaJ0SNY7soEsUEjb6gQ==:WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
)
TURNS = 700  # more than a password takes on any runtime
EACH = 127
DEBUG = 64
OTHER = "NEIGHBOUR"  # in all that the neighbours send but their client ids and filters
CANARY = b"canary of NEIGHBOUR" * 4
OWN = "SECRET"  # in what no line may have of the connection that it is about
SHORT = "Zq9"  # a secret within the first bytes
LOGIN = {"username": "user", "password": b"SECRET-password"}
WILL = ("will", "SECRET-will", 0)
FORBIDDEN = ("will", "SECRET-will", 2)  # max_qos is 1: a protocol error after the login
RIGHT = {"username": "user", "password": b"pencil"}
SMALL = connect("a", username="b", password=SHORT.encode())
PAYLOAD = publish("t", b"SECRET-payload")
CONNECTED = connect("stranger", will=WILL, **RIGHT)
CONNECTED5 = connect("stranger5", level=5, properties=b"", will=WILL, will_properties=b"", **RIGHT)
# What a client may not say: first, before and within CONNECT, then behind it.
FIRST = (
    b"\0\0" + SMALL,
    PINGREQ + SMALL,
    b"\xf0\0" + SMALL,
    b"\n" + SMALL,
    b"\x10\xff\xff\xff\xff" + LOGIN["password"],
    b"\x30\x10\0\x03t/" + SHORT.encode(),
    PAYLOAD,
    publish("a", SHORT.encode(), 1, 1),
    publish("t", b"SECRET-payload", 1, 1)[:-3],
    subscribe(1, "t", 0) + connect("stranger", **LOGIN),
    b"GET /x?" + SHORT.encode() + b" HTTP/1.1\r\nAuthorization: SECRET\r\n\r\n",
    b"\x16\x03\x01\2\0SECRET",
    connect("stranger", **LOGIN),
    connect("stranger", level=5, properties=b"", **LOGIN),
    connect("stranger", will=FORBIDDEN, **RIGHT),
    connect("stranger", will=FORBIDDEN, **LOGIN),
    connect("stranger", level=5, properties=b"\x21\0\0", **LOGIN),
    connect("stranger", will=WILL, **LOGIN)[:-4] + b"\0",
    connect("stranger", level=4, will=WILL, **LOGIN).replace(b"MQTT", b"MQTP"),
    b"\x11" + connect("stranger", will=WILL, **LOGIN)[1:],
    scram_client.connect("stranger") + PAYLOAD,
    scram_client.connect("stranger") + scram_client.connect("stranger"),
    scram_client.connect("stranger") + scram_client.auth(b"SECRET"),
)
BEHIND = (
    publish("t", b"SECRET-payload")[:-3] + PINGREQ * 3 + b"\xf1\0",
    publish("t/+", b"SECRET-payload"),
    publish("t" * 70, b"SECRET-payload"),
    publish("t", b"SECRET-payload" * 100),
    publish("t", b"SECRET-payload", 1, 0),
    b"\x36" + PAYLOAD[1:],
    b"\x40\2\0\x09" + PAYLOAD + b"\x62\2\0\0",
    subscribe(1, "", 0) + PAYLOAD,
    subscribe(0, "t", 0) + PAYLOAD,
    connect("stranger", **LOGIN),
    packet(0xE0, b"\x82\0SECRET"),
    packet(0x82, b"\0\1SECRET"),
    b"\x30\xff\xff\xff\xffSECRET",
    publish5("t", b"SECRET-payload", 0, 0, b"\x23\0\0"),
    publish5("", b"SECRET-payload", 0, 0, b"\x23\0\x09"),
    publish5("t", b"SECRET-payload", 0, 0, b"\x7f"),
)
NO_FRAMES = (
    publish("t", b"SECRET-payload"),  # not masked
    frame(PAYLOAD, TEXT),
    frame(PAYLOAD, kind=3),
    frame(bytes(126), PING),
    frame(PAYLOAD, fin=False) + frame(PAYLOAD),
    b"\xc2" + frame(PAYLOAD)[1:],
    b"\x82\xff" + b"\xff" * 8 + MASK + b"SECRET",
    b"\x88\x83" + MASK + b"SECRET",
)
REQUESTS = (
    request(first="GET /a?SECRET HTTP/1.1", end="\n"),
    request("Host: a", "Authorization: SECRET"),
    request("Host: a", "SECRET no header"),
    request(first="POST /SECRET HTTP/9"),
    connect("stranger", **LOGIN),
    request()[:40] + b"\xff\0\r\nSECRET\r\n\r\n",
)


class Numbers:
    """Pseudo-random numbers, the same on each runtime."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1103515245 + 12345) & 0x3FFFFFFF
        return (self.state >> 8) % n


class SecretsCase(unittest.TestCase):
    def setUp(self):
        pbkdf2.at_once = 0  # on CPython, too, a password takes slices
        limits = Limits(
            connections=16, sessions=24, max_packet=1024, tx_bytes=1024, topic_bytes=64
        )
        settings = {"password_file": scratch.write(FILE), "max_qos": 1, "max_packet_size": 1000}
        settings["login_delay_max"] = 0
        self.web = Web(limits=limits, log_dest=("topic",), **settings)
        self.broker, self.world = self.web.broker, self.web.world
        self.lines = []
        log_dests.open_all(("topic",), EACH, self.broker)
        self.broker.log = self.log
        self.broker.log_mask = EACH
        self.reader = self.world.client("reader")
        self.reader.send(subscribe(1, "$SYS/broker/log/#", 0))
        self.neighbours = [self.world.client(f"n{n}") for n in range(2)]
        self.neighbours[1].send(subscribe(1, "#", 1))
        self.world.turn(3)
        self.count = 0

    def tearDown(self):
        log_dests.close()
        pbkdf2.at_once = 8192

    def log(self, bit, line):
        if not bit & DEBUG:  # such lines have topics
            self.assertNotIn(OTHER, line)
        self.assertNotIn("canary of " + OTHER, line)
        self.lines.append(line)
        log.write(bit, line)

    def disturb(self, client=None, data=b""):
        """Neighbours say canaries, before and after the client says this. What they say is cut, so
        that the buffer that is read into begins with text."""
        self.count += 1
        secret = {"username": "other", "password": CANARY}
        late = connect(f"n{self.count}", will=(OTHER, CANARY, 0), **secret)
        last = self.world.come(late[:-60])
        early = publish(OTHER, CANARY, self.count % 2, 1)
        self.neighbours[0].send(early[:-60])
        self.world.turn()
        self.neighbours[0].send(early[-60:])
        client and client.send(data)
        last.send(late[-60:])
        self.world.turn(2)
        last.leave()

    def provoke(self, data, listener=None, cuts=()):
        """A connection that sends this in pieces."""
        client = self.world.come(b"", 1, None, listener)
        self.broker.log_mask ^= DEBUG  # with the fast path, and without
        start = 0
        for end in list(cuts) + [len(data)]:  # noqa: RUF005 - MicroPython
            self.disturb(client, data[start:end])
            start = end
        for _ in range(3):
            self.broker.users.logged[:] = (0, 0)  # no line about a login is left out
            self.settle()
            self.disturb()
        client.leave()
        self.world.turn(4)

    def settle(self):
        for _ in range(20):
            self.world.turn(TURNS, ms=0)
            if not self.broker.users.waiting:
                break
            self.world.turn(ms=100)
        self.world.turn(2)
        for each in self.neighbours:
            each.answer()

    def check(self):
        """Nothing of what was provoked is in the log, nor has a reader of it got that."""
        self.assertTrue([line for line in self.lines if "stranger" in line])
        told = [payload.decode() for _, payload in self.told()]
        self.assertTrue([line for line in told if "stranger" in line])
        for secret in (OWN, SHORT, "canary"):
            for line in told + self.lines:
                self.assertNotIn(secret, line)
        for line in told:
            self.assertNotIn(OTHER, line)

    def told(self):
        return [read_publish(data)[:2] for data in self.reader.packets() if data[0] >> 4 == 3]


class TestLogSecrets(SecretsCase):
    def test_tcp_before_a_session(self):
        for data in FIRST:
            self.provoke(data)
            self.provoke(data, cuts=(len(data) - 3,))
        self.check()

    def test_tcp_in_a_session(self):
        for data in BEHIND:
            for first in (CONNECTED, CONNECTED5):
                self.provoke(first + data, cuts=(len(first),))
                self.provoke(first + data, cuts=(len(first), len(first) + len(data) - 2))
        self.check()

    def test_websocket(self):
        listener = self.web.listener
        for data in REQUESTS:
            self.provoke(data, listener)
        for data in FIRST + BEHIND:
            self.provoke(request() + frame(data), listener, (len(request()),))
        for data in NO_FRAMES:
            for first in (b"", frame(CONNECTED), frame(CONNECTED5)):
                first = request() + first
                self.provoke(first + data, listener, (len(request()), len(first)))
        self.check()

    def test_with_bytes_changed(self):
        """A length that was changed makes of a client's own secret its name; another's never."""
        numbers = Numbers(7)
        for _ in range(60):
            data = bytearray((FIRST, BEHIND)[numbers.below(2)][numbers.below(len(BEHIND))])
            data = bytearray((CONNECTED, CONNECTED5, b"")[numbers.below(3)]) + data
            data[numbers.below(len(data))] = numbers.below(256)
            cuts = sorted([numbers.below(len(data)) for _ in range(numbers.below(3))])
            if numbers.below(2):
                data = request() + frame(bytes(data))
                data = bytearray(data)
                if numbers.below(2):
                    at = len(request()) + numbers.below(len(data) - len(request()))
                    data[at] = numbers.below(256)
                self.provoke(bytes(data), self.web.listener, cuts)
            else:
                self.provoke(bytes(data), None, cuts)
        self.assertGreater(len(self.lines), 60)
