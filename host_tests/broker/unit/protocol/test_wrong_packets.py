"""Acknowledgements with an unknown or wrong packet id, and first bytes that are always errors."""

import packets
import packets5
from broker_case import BrokerCase
from packets import PINGREQ, PINGRESP, PUBACK, PUBCOMP, PUBREC, PUBREL, ack, packet, text

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82
ACKS = (PUBACK, PUBREC, PUBREL, PUBCOMP)


class Case(BrokerCase):
    def connected(self, connect):
        """A client whose CONNECT was accepted."""
        client = self.come(connect)
        client.packets()
        return client

    def answers(self, client, sent):
        client.send(sent)
        self.world.turn(3)
        return client.packets()

    def refused(self, client, sent, reason=None):
        """The client is disconnected; reason: in version 5, with a DISCONNECT."""
        expected = [] if reason is None else [b"\xe0\2" + bytes((reason, 0))]
        self.assertEqual(self.answers(client, sent), expected, sent)
        self.assertTrue(client.stream.closed or reason)
        if reason:
            client.leave()
            self.world.turn(2)


class TestAcknowledgements(Case):
    def in_flight(self, version, qos, released=False):
        """A client with a message of that QoS in flight, and its packet id."""
        client = self.come(version.connect("c") + version.subscribe(1, "t", qos))
        client.packets()
        self.come(packets.connect("p") + packets.publish("t", b"x", qos, 1))
        (found,) = client.packets()
        read = version.read_publish(found)
        packet_id = read[2] if version is packets5 else read[3]
        if released:
            self.assertEqual(
                self.answers(client, ack(PUBREC, packet_id)), [ack(PUBREL, packet_id)]
            )
        return client, packet_id

    def test_one_of_the_wrong_kind_ends_the_connection(self):
        """Otherwise its delivery slot would never be freed."""
        cases = [(1, False, PUBREC), (1, False, PUBCOMP), (2, False, PUBACK), (2, False, PUBCOMP)]
        cases.append((2, True, PUBACK))
        for qos, released, kind in cases:
            for version in (packets, packets5):
                with self.subTest(qos=qos, released=released, kind=kind, version=version):
                    self.start()
                    client, packet_id = self.in_flight(version, qos, released)
                    reason = PROTOCOL_ERROR if version is packets5 else None
                    self.refused(client, ack(kind, packet_id), reason)
                    self.assertEqual(self.world.broker.deliveries.count[0], 0)

    def test_a_pubrec_with_an_error_after_pubrel_is_a_protocol_error(self):
        client, packet_id = self.in_flight(packets5, 2, True)
        sent = packet(PUBREC, packet_id.to_bytes(2, "big") + b"\x80")
        self.refused(client, sent, PROTOCOL_ERROR)

    def test_a_repeated_pubrec_gets_pubrel_again(self):
        for version in (packets, packets5):
            with self.subTest(version=version):
                self.start()
                client, packet_id = self.in_flight(version, 2, True)
                for _ in range(2):
                    answer = self.answers(client, ack(PUBREC, packet_id))
                    self.assertEqual(answer, [ack(PUBREL, packet_id)])
                self.assertEqual(self.answers(client, ack(PUBCOMP, packet_id)), [])
                self.assertEqual(self.world.broker.deliveries.count[0], 0)

    def test_with_retry_interval_a_wrong_kind_is_ignored(self):
        """With retry_interval a late acknowledgement may find the id used by another message."""
        self.start(retry_interval=1)
        for qos, released, kind in ((1, False, PUBCOMP), (2, False, PUBACK), (2, True, PUBACK)):
            client, packet_id = self.in_flight(packets, qos, released)
            self.assertEqual(self.answers(client, ack(kind, packet_id) + PINGREQ), [PINGRESP])
            client.leave()
            self.world.turn(2)

    def test_packet_id_0_ends_the_connection(self):
        for kind in ACKS:
            with self.subTest(kind=kind):
                for connect in (packets.connect("a"), packets.connect("b", level=3)):
                    self.refused(self.connected(connect), ack(kind, 0))
                self.refused(self.connected(packets5.connect("c")), ack(kind, 0), PROTOCOL_ERROR)


class TestFirstBytes(Case):
    """A first byte that is always an error ends the connection; the rest is not waited for."""

    def test_before_connect_only_connect_is_accepted(self):
        for first in (0, 0x20, 0x30, 0x47, 0xC0, 0xE0):
            self.refused(self.come(b""), bytes((first,)))

    def test_wrong_types_and_flags_end_the_connection(self):
        types = (0x00, 0x10, 0x20, 0x90, 0xB0, 0xD0)
        flags = (0x36, 0x37, 0x38, 0x41, 0x52, 0x60, 0x6A, 0x71, 0x80, 0x8A, 0xA0, 0xC1, 0xE1)
        for first in types + flags + (0xF0, 0xF1):
            with self.subTest(first=first):
                self.refused(self.connected(packets.connect("a")), bytes((first,)))
                client = self.connected(packets5.connect("b"))
                if first != 0xF0:  # AUTH
                    why = PROTOCOL_ERROR if first in types else MALFORMED
                    self.refused(client, bytes((first,)), why)

    def test_packets_before_it_in_the_same_read_are_answered(self):
        client = self.connected(packets.connect("a"))
        self.assertEqual(self.answers(client, PINGREQ + b"\xf0"), [PINGRESP])
        self.assertTrue(client.stream.closed)

    def test_after_a_valid_first_byte_the_rest_is_waited_for(self):
        for first in (0x30, 0x3D, 0x40, 0x50, 0x62, 0x70, 0x82, 0xA2, 0xC0, 0xE0):
            client = self.connected(packets.connect("a"))
            self.assertEqual(self.answers(client, bytes((first,))), [])
            self.assertFalse(client.stream.closed)
            client.leave()
            self.world.turn(2)


class TestVersion31(Case):
    """MQTT 3.1 leaves the flags of CONNECT undefined, and allows DUP in what is answered."""

    def test_flags_of_connect_are_ignored_in_3_1_only(self):
        for flags in (1, 8, 15):
            older = packets.connect("a", level=3)
            for connect in (older, packets.connect("b"), packets5.connect("b")):
                sent = bytes((connect[0] | flags,)) + connect[1:]
                if connect is older:
                    self.assertEqual(self.come(sent).packets(), [b"\x20\2\0\0"])
                else:
                    self.refused(self.come(b""), sent)

    def test_dup_is_allowed_as_soon_as_the_first_byte_is_read(self):
        name = text("t")
        for first, body, answer in (
            (0x6A, b"\0\1", ack(PUBCOMP, 1)),
            (0x8A, b"\0\1" + name + b"\0", b"\x90\3\0\1\0"),
            (0xAA, b"\0\1" + name, b"\xb0\2\0\1"),
        ):
            client = self.connected(packets.connect("a", level=3))
            sent = packet(first, body)
            self.assertEqual(self.answers(client, sent[:1]), [])
            self.assertEqual(self.answers(client, sent[1:]), [answer])
