"""Acknowledgements with an unknown or wrong packet id, and first bytes that are always errors."""

import unittest

import packets
import packets5
from fakes import Client, Stream, World
from packets import PINGREQ, PINGRESP, PUBACK, PUBCOMP, PUBREC, PUBREL, ack, packet, text

from slotmq import Broker, Settings

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82
ACKS = (PUBACK, PUBREC, PUBREL, PUBCOMP)


def connect31(name, flags=0):
    return packet(0x10 | flags, text("MQIsdp") + b"\3\2\0\0" + text(name))


class Case(unittest.TestCase):
    def setUp(self):
        self.start()

    def start(self, **settings):
        self.world = World(Broker(settings=Settings(sys_interval=0, **settings)))

    def come(self, said):
        client = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(said)
        self.world.turn(3)
        return client

    def say(self, client, said):
        """What it is answered."""
        client.send(said)
        self.world.turn(3)
        return client.packets()

    def refused(self, client, said, reason=None):
        """It is closed, and told why in version 5."""
        told = [] if reason is None else [b"\xe0\2" + bytes((reason, 0))]
        self.assertEqual(self.say(client, said), told, said)
        self.assertTrue(client.stream.closed or reason)
        if reason:
            client.leave()
            self.world.turn(2)


class TestAcknowledgements(Case):
    def given(self, version, qos, released=False):
        """A client that has a message of that QoS in flight, and its packet id."""
        client = self.come(version.connect("c") + version.subscribe(1, "t", qos))
        client.packets()
        self.come(packets.connect("p") + packets.publish("t", b"x", qos, 1))
        (found,) = client.packets()
        read = version.read_publish(found)
        packet_id = read[2] if version is packets5 else read[3]
        if released:
            self.assertEqual(self.say(client, ack(PUBREC, packet_id)), [ack(PUBREL, packet_id)])
        return client, packet_id

    def test_the_wrong_kind_ends_the_connection(self):
        """Else its slot would be taken for ever."""
        cases = [(1, False, PUBREC), (1, False, PUBCOMP), (2, False, PUBACK), (2, False, PUBCOMP)]
        cases.append((2, True, PUBACK))
        for qos, released, kind in cases:
            for version in (packets, packets5):
                with self.subTest(qos=qos, released=released, kind=kind, version=version):
                    self.start()
                    client, packet_id = self.given(version, qos, released)
                    reason = PROTOCOL_ERROR if version is packets5 else None
                    self.refused(client, ack(kind, packet_id), reason)
                    self.assertEqual(self.world.broker.deliveries.count[0], 0)

    def test_an_error_behind_pubrel(self):
        client, packet_id = self.given(packets5, 2, True)
        said = packet(PUBREC, packet_id.to_bytes(2, "big") + b"\x80")
        self.refused(client, said, PROTOCOL_ERROR)

    def test_pubrec_again_gets_its_pubrel_again(self):
        for version in (packets, packets5):
            with self.subTest(version=version):
                self.start()
                client, packet_id = self.given(version, 2, True)
                for _ in range(2):
                    answer = self.say(client, ack(PUBREC, packet_id))
                    self.assertEqual(answer, [ack(PUBREL, packet_id)])
                self.assertEqual(self.say(client, ack(PUBCOMP, packet_id)), [])
                self.assertEqual(self.world.broker.deliveries.count[0], 0)

    def test_what_is_sent_twice_may_be_acknowledged_late(self):
        """With retry_interval the id may be another message's by then."""
        self.start(retry_interval=1)
        for qos, released, kind in ((1, False, PUBCOMP), (2, False, PUBACK), (2, True, PUBACK)):
            client, packet_id = self.given(packets, qos, released)
            self.assertEqual(self.say(client, ack(kind, packet_id) + PINGREQ), [PINGRESP])
            client.leave()
            self.world.turn(2)

    def test_ids_that_are_not_known(self):
        for version in (packets, packets5):
            client = self.come(version.connect(version.__name__) + PINGREQ)
            client.packets()
            unknown = b"" if version is packets else b"\x92"
            for kind, answer in ((PUBREC, PUBREL), (PUBREL, PUBCOMP)):
                wanted = packet(answer, b"\0\7" + unknown)
                self.assertEqual(self.say(client, ack(kind, 7)), [wanted])
            self.assertEqual(self.say(client, ack(PUBACK, 7) + ack(PUBCOMP, 7)), [])
            self.assertEqual(self.say(client, PINGREQ), [PINGRESP])

    def test_packet_id_0(self):
        for kind in ACKS:
            with self.subTest(kind=kind):
                for said in (packets.connect("a"), connect31("b")):
                    client = self.come(said)
                    client.packets()
                    self.refused(client, ack(kind, 0))
                client = self.come(packets5.connect("c"))
                client.packets()
                self.refused(client, ack(kind, 0), PROTOCOL_ERROR)


class TestFirstBytes(Case):
    """A packet that can never be right is not waited for."""

    def test_before_connect(self):
        for first in (0, 0x20, 0x30, 0x47, 0xC0, 0xE0):
            self.refused(self.come(b""), bytes((first,)))

    def test_types_and_reserved_flags(self):
        types = (0x00, 0x10, 0x20, 0x90, 0xB0, 0xD0)
        flags = (0x36, 0x37, 0x38, 0x41, 0x52, 0x60, 0x6A, 0x71, 0x80, 0x8A, 0xA0, 0xC1, 0xE1)
        for first in types + flags + (0xF0, 0xF1):
            with self.subTest(first=first):
                client = self.come(packets.connect("a"))
                client.packets()
                self.refused(client, bytes((first,)))
                client = self.come(packets5.connect("b"))
                client.packets()
                if first != 0xF0:  # AUTH
                    why = PROTOCOL_ERROR if first in types else MALFORMED
                    self.refused(client, bytes((first,)), why)

    def test_in_the_midst_of_a_read(self):
        client = self.come(packets.connect("a"))
        client.packets()
        self.refused_behind = self.say(client, PINGREQ + b"\xf0")
        self.assertEqual(self.refused_behind, [PINGRESP])
        self.assertTrue(client.stream.closed)

    def test_what_may_become_right_is_waited_for(self):
        for first in (0x30, 0x3D, 0x40, 0x50, 0x62, 0x70, 0x82, 0xA2, 0xC0, 0xE0):
            client = self.come(packets.connect("a"))
            client.packets()
            self.assertEqual(self.say(client, bytes((first,))), [])
            self.assertFalse(client.stream.closed)
            client.leave()
            self.world.turn(2)


class TestVersion31(Case):
    """Its text leaves the flags of CONNECT undefined, and has DUP for whatever is answered."""

    def test_flags_of_connect(self):
        for flags in (1, 8, 15):
            client = self.come(connect31("a", flags))
            self.assertEqual(client.packets(), [b"\x20\2\0\0"])
            for version in (packets, packets5):
                said = bytearray(version.connect("b"))
                said[0] |= flags
                self.refused(self.come(b""), bytes(said))

    def test_dup(self):
        name = text("t")
        for first, body, answer in (
            (0x6A, b"\0\1", ack(PUBCOMP, 1)),
            (0x8A, b"\0\1" + name + b"\0", b"\x90\3\0\1\0"),
            (0xAA, b"\0\1" + name, b"\xb0\2\0\1"),
        ):
            client = self.come(connect31("a"))
            client.packets()
            said = packet(first, body)
            self.assertEqual(self.say(client, said[:1]), [])
            self.assertEqual(self.say(client, said[1:]), [answer])
