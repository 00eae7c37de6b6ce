"""MQTT 5.0 through the loop: answers that fill a buffer, long times, the end of connections."""

import packets5
from broker_case import BrokerCase
from packets import (
    PINGREQ,
    PINGRESP,
    PUBREL,
    ack,
    connect,
    packet,
    section,
    split,
    subscribe,
    text,
)

from slotmq import Limits, Settings

DISCONNECT = b"\xe0\0"
METHOD = b"\x15" + text("any")
FOREVER = b"\xff\xff\xff\xff"


class Hooks:
    """Lets everybody in, and says a lot to it."""

    def auth(self, conn, method, data):
        return 0, b"d" * 300

    def forget(self, conn):
        pass


class TestSpace(BrokerCase):
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
        again = packet(0xF0, b"\x19" + section(METHOD))
        self.check(packets5.connect("b", METHOD) + again + PINGREQ * 300)


class TestTimes(BrokerCase):
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


class TestEnds(BrokerCase):
    def test_a_stop_closes_every_connection(self):
        clients = [self.come(packets5.connect("a")), self.come(connect("b"))]
        clients.append(self.come(packets5.connect("c") + PINGREQ + b"\xf7\0"))  # it lingers
        self.world.loop.close()
        self.assertEqual([client.stream.closed for client in clients], [True] * 3)
        self.assertEqual(self.broker.conns.count, 0)

    def test_one_that_lingers_makes_way_though_it_has_just_sent_something(self):
        self.start(Limits(connections=1))
        self.come(packets5.connect("a"))
        lingers = self.come(packets5.connect("b") + b"\xf7\0")
        self.assertFalse(lingers.stream.closed)
        lingers.send(PINGREQ)
        self.come(packets5.connect("c"), 3)
        self.assertTrue(lingers.stream.closed)

    def test_one_that_lingers_and_whose_socket_fails(self):
        def fails(n):
            raise OSError(104)

        client = self.come(packets5.connect("a"))
        client.stream.write_some = lambda n: None
        client.send(b"\xf7\0")
        self.world.turn(2)
        self.assertFalse(client.stream.closed)
        client.stream.write_some = fails
        client.leave()
        self.world.turn(2)
        self.assertTrue(client.stream.closed)

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


class Hook:
    """Answers may_connect with this."""

    def __init__(self, code):
        self.code = code

    def may_connect(self, client_id, user_name, password):
        return self.code


class TestRefusals(BrokerCase):
    def test_whatever_number_a_hook_answers(self):
        """Version 3 has codes up to 5; version 5 has none below 0x80."""
        logged = []
        self.broker.log = lambda bit, text: logged.append(text)
        self.broker.log_mask = 4
        reasons = (0x84, 0x85, 0x88, 0x86)
        for code in range(1, 256):
            self.broker.hooks = Hook(code)
            client = self.come(connect("a"))
            self.assertEqual(client.packets(), [b"\x20\2\0" + bytes((min(code, 5),))])
            reason = code if code > 127 else reasons[code - 1] if code < 5 else 0x87
            client = self.come(packets5.connect("a"), 5)
            self.assertEqual(client.packets(), [b"\x20\3\0" + bytes((reason, 0))])
            self.assertTrue(logged[0].endswith(f" code {min(code, 5)})."), logged[0])
            self.assertTrue(logged[1].endswith(f" 0x{reason:02x})."), logged[1])
            logged.clear()
        self.broker.log_mask = 0
        self.assertEqual(self.broker.connected, 0)

    def test_where_to_go_is_told_with_two_of_them(self):
        """Unavailable (3 of version 3, too) and Quota exceeded."""
        self.start(server_reference="other")
        for code in (5, 6, 0x80, 0x88, 0x97, 3):
            self.broker.hooks = Hook(code)
            answer = self.come(packets5.connect("a"), 5).packets()[0]
            self.assertEqual(answer[3] == 0x9C, code in (0x88, 0x97, 3))


class TestLog(BrokerCase):
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
                self.assertIn("] disconnected: " + why + ".", self.reason(has, code))
