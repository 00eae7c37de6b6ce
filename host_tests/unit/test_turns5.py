"""MQTT 5.0 through the real loop: answers that fill a buffer, times that are long, the end."""

import unittest

import packets5
from fakes import Client, Stream, World, anything
from invariants import broken
from packets import (
    PINGREQ,
    PINGRESP,
    PUBREL,
    ack,
    connect,
    packet,
    publish,
    split,
    subscribe,
    text,
)
from tables import counts

from slotmq import Broker, Limits, Settings, lifecycle

DISCONNECT = b"\xe0\0"
METHOD = b"\x15" + text("any")
FOREVER = b"\xff\xff\xff\xff"


class Hooks:
    """Lets everybody in, and says a lot to it."""

    def auth(self, conn, method, data):
        return 0, b"d" * 300

    def forget(self, conn):
        pass


class Turns5(unittest.TestCase):
    def start(self, limits=None, **settings):
        self.world = World(Broker(limits or Limits(), Settings(sys_interval=0, **settings)))
        self.broker = self.world.broker
        self.at_first = counts(self.broker)

    def setUp(self):
        self.start()

    def tearDown(self):
        self.assertEqual(broken(self.broker), [])
        for stream in list(self.world.loop.of_stream):
            if isinstance(stream, Stream):
                stream.ended = True
                stream.read = stream.write_some = lambda n: n
        self.world.turn(10)
        for session in range(self.broker.sessions.slots):
            if self.broker.sessions.used(session):
                lifecycle.end_session(self.broker, session)
        self.assertEqual(counts(self.broker), self.at_first)

    def written(self, n):
        """No write may be longer than a buffer: it would be another connection's bytes."""
        self.assertLessEqual(n, self.broker.limits.tx_bytes)
        return n

    def come(self, said, turns=3):
        client = Client(Stream(write=self.written))
        self.world.listener.waiting.append(client.stream)
        client.send(said)
        self.world.turn(turns)
        return client

    def wait(self, seconds):
        self.world.turn(seconds * 10, ms=100)


class TestRoom(Turns5):
    """A read of any bytes is answered within the outgoing buffer."""

    def check(self, said, before=b""):
        others = [self.come(packets5.connect(f"o{n}")) for n in range(3)]
        said += b"\xc0\0"
        client = self.come(packets5.connect("a") + before if before else b"")
        client.send(said)
        self.world.turn(60)
        found, size = split(client.stream.received)
        self.assertEqual(size, len(client.stream.received))
        self.assertEqual(found[-1], PINGRESP)
        for other in others:
            self.assertEqual(len(other.packets()), 1)
        return found

    def test_acknowledgements_of_unknown_ids(self):
        for first in (0x50, PUBREL):
            with self.subTest(first=first):
                self.start()
                self.check(ack(first, 9) * 300, PINGREQ)

    def test_a_connack_and_what_follows_at_once(self):
        for small in (PINGREQ, ack(PUBREL, 9)):
            with self.subTest(small=small):
                self.start()
                self.check(packets5.connect("") + small * 400)

    def test_the_longest_connack_that_settings_may_ask_for(self):
        limits = Limits(shares=0)
        most = {"max_qos": 0, "retain_available": False, "max_keepalive": 5}
        most["persistent_client_expiration"] = 5
        asks = packets5.connect("", b"\x19\x01", expiry=60)
        n = 200
        while self.fits(limits, n + 1, most):
            n += 1
        self.assertTrue(200 < n < 300, n)
        self.start(limits, response_information="x" * n, **most)
        self.assertEqual(self.check(asks + ack(PUBREL, 9) * 400)[0][3:5], b"\0\0")

    def fits(self, limits, n, others):
        try:
            Settings(response_information="x" * n, **others).check(limits)
        except ValueError:
            return False
        return True

    def test_a_long_answer_to_auth(self):
        self.broker.hooks = Hooks()
        again = packet(0xF0, b"\x19" + packets5.section(METHOD))
        self.check(packets5.connect("b", METHOD) + again + PINGREQ * 300)


class TestTimes(Turns5):
    def test_the_longest_will_delay(self):
        will = ("t", "x", 1, b"\x18" + FOREVER)
        client = self.come(packets5.connect("a", will=will, expiry=0xFFFFFFFF))
        client.leave()
        self.wait(20)
        self.assertEqual(sum([msg != 0xFFFF for msg in self.broker.sessions.will]), 1)

    def test_the_longest_expiry_after_a_hundred_days(self):
        self.broker.now = 100 * 86400 * 10
        client = self.come(packets5.connect("a") + packets5.subscribe(1, "t", 1))
        client.packets()
        for seconds in (99999999, 100000000):
            told = b"\x02" + seconds.to_bytes(4, "big")
            client.send(packets5.publish("t", b"x", 1, 1, told))
            self.world.turn(3)
            self.assertEqual(len(client.packets()), 2)
        will = ("t", "x", 1, b"\x02" + (100000000).to_bytes(4, "big"))
        self.come(packets5.connect("b", will=will)).leave()
        self.world.turn(3)
        self.assertEqual(len(client.packets()), 1)

    def test_version_3_lets_go_of_what_has_expired(self):
        for away in (False, True):
            with self.subTest(away=away):
                self.start(Limits(deliveries=5000))  # which are not swept at once
                client = self.come(connect("a", clean=False) + subscribe(1, "t", 1))
                if away:
                    client.send(DISCONNECT)
                    self.world.turn(2)
                told = b"\x02\0\0\0\1"
                self.come(packets5.connect("b") + packets5.publish("t", b"x", 1, 1, told))
                client.leave()
                self.world.turn(13, ms=100)
                client = self.come(connect("a", clean=False))
                found = [data for data in client.packets() if data[0] >> 4 == 3]
                self.assertEqual(len(found), 0 if away else 1)  # it had begun: again
                for data in found:
                    client.send(ack(0x40, data[5] << 8 | data[6]))
                self.wait(2)
                self.assertEqual(self.broker.deliveries.count[0], 0)
                self.assertEqual(self.broker.messages.count[0], 0)


class TestEnds(Turns5):
    def test_a_stop_closes_every_connection(self):
        clients = [self.come(packets5.connect("a")), self.come(connect("b"))]
        clients.append(self.come(packets5.connect("c") + PINGREQ + b"\xf7\0"))  # it lingers
        self.world.loop.close()
        self.assertEqual([client.stream.closed for client in clients], [True] * 3)
        self.assertEqual(self.broker.conns.count, 0)

    def test_version_3_alone_ends_with_a_cut_packet(self):
        self.start(mqtt_versions=3)
        client = self.come(connect("a"))
        client.send(b"\xe0")
        self.world.turn(2)
        client.send(b"\0\xc0\0")
        self.world.turn(2)
        self.assertTrue(client.stream.closed)

    def test_a_second_connect_while_auth_is_under_way(self):
        hooks = Hooks()
        hooks.auth = lambda conn, method, data: (0x18, b"go on")
        self.broker.hooks = hooks
        for second in (connect("b"), packets5.connect("a"), packets5.connect("a", METHOD)):
            client = self.come(packets5.connect("a", METHOD))
            client.packets()
            client.send(second)
            self.world.turn(3)
            self.assertFalse(
                [data for data in client.packets() if data[0] == 0x20 and not data[3]]
            )
            client.leave()
            self.wait(2)
            self.assertEqual(len(self.broker.five.exchanges), 0)


class TestTheLastWord(Turns5):
    """Nothing follows a DISCONNECT to a client [3.14.4-1], whatever the turn brings yet."""

    BAD = b"\xf3\0"
    WORD = b"\xe0\2\x81\0"

    def subscriber(self, qos):
        client = self.come(packets5.connect("a", expiry=60) + packets5.subscribe(1, "t", qos))
        client.packets()
        return client

    def ended(self, client):
        """What it is told until its connection is closed."""
        self.world.turn(3)
        found = client.packets()
        self.wait(2)
        self.assertTrue(client.stream.closed)
        self.assertEqual(client.packets(), [])
        return found

    def again(self):
        """The messages that its session was still owed, as first bytes."""
        client = self.come(packets5.connect("a", clean=False, expiry=60))
        return [data[0] for data in client.packets() if data[0] >> 4 == 3]

    def test_a_message_of_another_in_the_same_turn(self):
        for is_5 in (False, True):
            make, others = (packets5.publish, packets5.connect) if is_5 else (publish, connect)
            for qos in range(3):
                for size in (1, 5000):  # larger than the outgoing buffer: in parts
                    with self.subTest(is_5=is_5, qos=qos, size=size):
                        self.start(Limits(max_packet=6000))
                        client = self.subscriber(qos)
                        other = self.come(others("b"))
                        client.send(self.BAD)
                        other.send(make("t", b"x" * size, qos, 1))
                        self.assertEqual(self.ended(client), [self.WORD])
                        # not sent yet, so without DUP
                        self.assertEqual(self.again(), [0x30 | qos << 1] if qos else [])

    def test_its_own_in_the_same_read(self):
        for qos in (1, 2):
            with self.subTest(qos=qos):
                self.start()
                client = self.subscriber(qos)
                client.send(packets5.publish("t", b"x", qos, 1) + self.BAD + PINGREQ)
                found = self.ended(client)
                self.assertEqual([data[0] for data in found], [0x30 + (qos << 4), 0xE0])
                self.assertEqual(self.again(), [0x30 | qos << 1])

    def test_no_answer_to_what_follows(self):
        said = PINGREQ + ack(PUBREL, 9) + packets5.publish("t", b"x", 1, 1)
        for cut in (False, True):
            with self.subTest(cut=cut):
                self.start()
                client = self.subscriber(1)
                if cut:
                    client.send(self.BAD[:1])
                    self.world.turn()
                client.send((self.BAD[1:] if cut else self.BAD) + said)
                self.assertEqual(self.ended(client), [self.WORD])

    def test_wills_of_a_stop_go_out_before_it(self):
        for qos in (0, 1):
            with self.subTest(qos=qos):
                self.start()
                witness = self.subscriber(qos)
                others = [self.come(packets5.connect("b", will=("t", "x", qos, b"")))]
                others.append(self.come(connect("c", will=("t", "x", qos))))
                self.world.loop.close()
                first = 0x30 | qos << 1
                found = [data[0] for data in witness.packets()]
                self.assertEqual(found, [first, first, 0xE0])


class TestWhatIsLogged(Turns5):
    def reason(self, will, code):
        """Why a client has left, in the words of the log."""
        logged = []
        self.broker.log = lambda bit, text: logged.append(text)
        self.broker.log_mask = 4
        self.come(packets5.connect("a", will=will) + b"\xe0\x01" + bytes((code,)))
        self.broker.log_mask = 0
        return logged[-1]

    def test_a_will_is_named_where_there_is_one(self):
        will = ("gone", "x", 0, b"")
        for has, code, why in (
            (will, 4, "left with its will"),
            (will, 0, "left"),
            (None, 4, "left"),
            (None, 0, "left"),
        ):
            with self.subTest(has=has, code=code):
                self.assertEqual(self.reason(has, code), "Client a disconnected: " + why + ".")


class TestNoSlot(Turns5):
    """QoS 0 asks for no message slot where the sockets take it."""

    def test_a_long_message_with_a_full_table_reaches_every_version(self):
        self.start(Limits(messages=4, message_bytes=4096))
        older = self.come(connect("older") + subscribe(1, "t", 0))
        newer = self.come(packets5.connect("newer") + packets5.subscribe(1, "t", 0))
        sender = self.come(packets5.connect("sender"))
        for n in range(4):
            sender.send(packets5.publish(f"kept/{n}", b"x", retain=True))
        self.world.turn(3)
        self.assertEqual(self.broker.messages.count[0], 4)
        for client in (older, newer):
            client.packets()
            client.stream.write_some = anything  # straight from where it was read
        size = 3 * self.broker.limits.tx_bytes
        for said in (
            packets5.publish("t", b"y" * size),
            packets5.publish("t", b"y" * size, properties=b"\x26" + text("a") + text("b")),
        ):
            sender.send(said)
            self.world.turn(9)
            self.assertEqual(newer.packets(), [said])
            self.assertEqual(older.packets(), [publish("t", b"y" * size)])
        for n in range(4):
            sender.send(packets5.publish(f"kept/{n}", b"", retain=True))
        self.world.turn(3)
