"""MQTT 5.0 through the loop: full buffers, long times, refusals, QoS 0 without a message slot."""

import packets5
from broker_case import BrokerCase
from fakes import anything
from packets import (
    PINGREQ,
    PINGRESP,
    PUBREL,
    ack,
    connect,
    packet,
    publish,
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
    """Accepts every authentication, with a long answer."""

    def auth(self, conn, method, data):
        return 0, b"d" * 300

    def forget(self, conn):
        pass


class TestFullBuffer(BrokerCase):
    """All answers to the packets of one read fit the outgoing buffer."""

    def check(self, sent, before=b""):
        others = [self.come(packets5.connect(f"o{n}")) for n in range(3)]
        sent += b"\xc0\0"
        client = self.come(packets5.connect("a") + before if before else b"")
        client.send(sent)
        self.world.turn(60)
        found, size = split(client.stream.received)
        self.assertEqual(size, len(client.stream.received))
        self.assertEqual(found[-1], PINGRESP)
        for other in others:
            self.assertEqual(len(other.packets()), 1)
        return found

    def test_many_acknowledgements_of_unknown_ids(self):
        for first in (0x50, PUBREL):
            with self.subTest(first=first):
                self.start()
                self.check(ack(first, 9) * 300, PINGREQ)

    def test_a_connack_and_the_answers_to_what_follows_it(self):
        for small in (PINGREQ, ack(PUBREL, 9)):
            with self.subTest(small=small):
                self.start()
                self.check(packets5.connect("") + small * 400)

    def test_the_longest_connack_that_settings_allow(self):
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
    def test_a_will_with_the_longest_delay_waits(self):
        will = ("t", "x", 1, b"\x18" + FOREVER)
        client = self.come(packets5.connect("a", will=will, expiry=0xFFFFFFFF))
        client.leave()
        self.wait(20)
        self.assertEqual(sum([msg != 0xFFFF for msg in self.broker.sessions.will]), 1)

    def test_long_expiries_after_a_hundred_days(self):
        self.broker.now = 100 * 86400 * 10
        client = self.come(packets5.connect("a") + packets5.subscribe(1, "t", 1))
        client.packets()
        for seconds in (99999999, 100000000):
            expiry = b"\x02" + seconds.to_bytes(4, "big")
            client.send(packets5.publish("t", b"x", 1, 1, expiry))
            self.world.turn(3)
            self.assertEqual(len(client.packets()), 2)
        will = ("t", "x", 1, b"\x02" + (100000000).to_bytes(4, "big"))
        self.come(packets5.connect("b", will=will)).leave()
        self.world.turn(3)
        self.assertEqual(len(client.packets()), 1)

    def test_expired_messages_of_a_version_3_session_are_freed(self):
        for away in (False, True):
            with self.subTest(away=away):
                self.start(Limits(deliveries=5000))  # too many to sweep at once
                client = self.come(connect("a", clean=False) + subscribe(1, "t", 1))
                if away:
                    client.send(DISCONNECT)
                    self.world.turn(2)
                expiry = b"\x02\0\0\0\1"
                self.come(packets5.connect("b") + packets5.publish("t", b"x", 1, 1, expiry))
                client.leave()
                self.world.turn(13, ms=100)
                client = self.come(connect("a", clean=False))
                found = [data for data in client.packets() if data[0] >> 4 == 3]
                self.assertEqual(len(found), 0 if away else 1)  # if it was in flight, again
                for data in found:
                    client.send(ack(0x40, data[5] << 8 | data[6]))
                self.wait(2)
                self.assertEqual(self.broker.deliveries.count[0], 0)
                self.assertEqual(self.broker.messages.count[0], 0)


class TestEnds(BrokerCase):
    def test_a_packet_cut_in_its_header_ends_a_connection_if_only_version_3_is_allowed(self):
        self.start(mqtt_versions=3)
        client = self.come(connect("a"))
        client.send(b"\xe0")
        self.world.turn(2)
        client.send(b"\0\xc0\0")
        self.world.turn(2)
        self.assertTrue(client.stream.closed)

    def test_a_second_connect_during_an_authentication_is_refused(self):
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
    """Returns this code from may_connect."""

    def __init__(self, code):
        self.code = code

    def may_connect(self, client_id, user_name, password):
        return self.code


class TestRefusals(BrokerCase):
    def log(self):
        self.logged = []
        self.broker.log = lambda bit, text: self.logged.append(text)
        self.broker.log_mask = 4

    def test_each_code_of_a_hook_has_a_valid_reason_in_connack_and_log(self):
        """Version 3 has codes up to 5; version 5 has none below 0x80."""
        self.log()
        reasons = (0x84, 0x85, 0x88, 0x86)
        for code in range(1, 256):
            self.broker.hooks = Hook(code)
            client = self.come(connect("a"))
            self.assertEqual(client.packets(), [b"\x20\2\0" + bytes((min(code, 5),))])
            reason = code if code > 127 else reasons[code - 1] if code < 5 else 0x87
            client = self.come(packets5.connect("a"), 5)
            self.assertEqual(client.packets(), [b"\x20\3\0" + bytes((reason, 0))])
            self.assertTrue(self.logged[0].endswith(f" code {min(code, 5)})."), self.logged[0])
            self.assertTrue(self.logged[1].endswith(f" 0x{reason:02x})."), self.logged[1])
            self.logged.clear()
        self.broker.log_mask = 0
        self.assertEqual(self.broker.connected, 0)

    def test_the_server_reference_comes_with_two_of_them(self):
        """With Server unavailable (also 3, of version 3) and Quota exceeded."""
        self.start(server_reference="other")
        self.log()
        for code in (5, 6, 0x80, 0x88, 0x97, 3):
            self.broker.hooks = Hook(code)
            answer = self.come(packets5.connect("a"), 5).packets()[0]
            self.assertEqual(answer[3] == 0x9C, code in (0x88, 0x97, 3))
        self.assertTrue(self.logged[-1].endswith(": use another server (reason 0x9c)."))


class TestQos0(BrokerCase):
    """QoS 0 needs no message slot if the sockets take it at once."""

    def test_a_long_message_reaches_both_versions_although_the_table_is_full(self):
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
            client.stream.write_some = anything  # it is written from the read buffer
        size = 3 * self.broker.limits.tx_bytes
        for sent in (
            packets5.publish("t", b"y" * size),
            packets5.publish("t", b"y" * size, properties=b"\x26" + text("a") + text("b")),
        ):
            sender.send(sent)
            self.world.turn(9)
            self.assertEqual(newer.packets(), [sent])
            self.assertEqual(older.packets(), [publish("t", b"y" * size)])
        for n in range(4):
            sender.send(packets5.publish(f"kept/{n}", b"", retain=True))
        self.world.turn(3)
