"""The sender's table as kawaii-mqtt describes it: a row for each packet whose acknowledgement is
still to come, which PUBREC turns from a stored message into a stored packet id, and which is sent
again, once and in order, after a reconnect.

Where kawaii-mqtt sends again by a timer, MQTT does so on a new connection only."""

from bridge_case import RESUMED, BridgeCase
from packets import (
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    publish,
    read_publish,
    subscribe,
)

NONE = 0xFFFF
AWAITED = {1: PUBACK, 2: PUBREC, 3: PUBCOMP}  # by state of a delivery


class TestSendersTable(BridgeCase):
    LIMITS = {"inflight": 3, "queued": 2}  # noqa: RUF012

    def rows(self):
        """(packet that is awaited, packet id, is the message stored?) of each row, in order."""
        deliveries = self.broker.deliveries
        found = []
        entry = self.broker.sessions.head[self.one.session]
        while entry != NONE:
            if deliveries.state[entry]:  # 0: not sent yet
                has_message = deliveries.msg[entry] != NONE
                found.append((AWAITED[deliveries.state[entry]], entry + 1, has_message))
            entry = deliveries.next[entry]
        return found

    def sent(self, remote):
        """Bridge the messages 0, 1 and 2 at QoS 1, 2, 2; -> their packet ids."""
        for k, qos in enumerate((1, 2, 2)):
            self.broker.publish("a", b"%d" % k, qos)
        self.world.turn(2)
        ids = [read_publish(data)[3] for data in remote.packets()]
        wanted = [(PUBACK, ids[0], True), (PUBREC, ids[1], True), (PUBREC, ids[2], True)]
        self.assertEqual(self.rows(), wanted)
        return ids

    def answer(self, remote, *packets):
        """The other broker sends these; -> what the bridge sends then."""
        remote.send(b"".join(packets))
        self.world.turn(2)
        return remote.packets()

    def start_bridge(self):
        self.bridge(("a", "out", 2), keepalive_interval=60)
        return self.remote()

    def test_each_acknowledgement_moves_its_own_row(self):
        remote = self.start_bridge()
        first, second, third = self.sent(remote)
        stored = self.broker.messages.count[0]
        self.assertEqual(self.answer(remote, ack(PUBREC, second)), [ack(PUBREL, second)])
        wanted = [(PUBACK, first, True), (PUBCOMP, second, False), (PUBREC, third, True)]
        self.assertEqual(self.rows(), wanted)
        self.assertEqual(self.broker.messages.count[0], stored - 1)
        # PUBREC comes again: PUBREL again, and nothing else
        self.assertEqual(self.answer(remote, ack(PUBREC, second)), [ack(PUBREL, second)])
        # An id that no row has changes none
        self.assertEqual(self.answer(remote, ack(PUBACK, 999), ack(PUBCOMP, 999)), [])
        self.assertEqual(self.answer(remote, ack(PUBREC, 999)), [ack(PUBREL, 999)])
        self.assertEqual(self.rows(), wanted)
        self.assertEqual(self.answer(remote, ack(PUBCOMP, second)), [])
        self.assertEqual(self.rows(), [wanted[0], wanted[2]])
        self.assertEqual(self.answer(remote, ack(PUBACK, first)), [])
        self.assertEqual(self.answer(remote, ack(PUBREC, third)), [ack(PUBREL, third)])
        self.assertEqual(self.answer(remote, ack(PUBCOMP, third)), [])
        self.assertEqual(self.rows(), [])
        self.assertEqual(self.broker.messages.count[0], 0)

    def test_the_wrong_acknowledgement_ends_the_connection_and_no_row(self):
        remote = self.start_bridge()
        first, second, third = self.sent(remote)
        self.answer(remote, ack(PUBREC, second))
        rows = self.rows()
        for wrong in ((PUBACK, second), (PUBACK, third), (PUBCOMP, first), (PUBCOMP, third)):
            remote.send(ack(*wrong))
            self.world.turn(2)
            self.assertEqual((remote.stream.closed, self.rows()), (True, rows), wrong)
            self.dialled()
            remote = self.remote(RESUMED)
            self.assertEqual(len(remote.packets()), 3)
        self.answer(remote, ack(PUBACK, first), ack(PUBCOMP, second), ack(PUBREC, third))
        self.answer(remote, ack(PUBCOMP, third))

    def test_after_a_reconnect_each_row_is_sent_once_and_none_by_time(self):
        remote = self.start_bridge()
        first, second, third = self.sent(remote)
        self.answer(remote, ack(PUBREC, second))
        rows = self.rows()
        for _ in range(3):
            remote = self.lose(remote)
            again = [publish("a", b"0", 1, first, dup=True), ack(PUBREL, second)]
            again.append(publish("a", b"2", 2, third, dup=True))
            self.assertEqual(remote.packets(), again)
            self.assertEqual(self.rows(), rows)
            for _ in range(5):
                self.wait(60)
                self.assertEqual(remote.packets(), [PINGREQ])
                remote.send(PINGRESP)
        self.answer(remote, ack(PUBACK, first), ack(PUBCOMP, second), ack(PUBREC, third))
        self.answer(remote, ack(PUBCOMP, third))
        self.assertEqual(self.rows(), [])

    def test_a_full_table_forgets_no_row(self):
        remote = self.start_bridge()
        first, second, third = self.sent(remote)
        rows = self.rows()
        for k in range(3, 8):  # two wait, three are refused and counted
            self.broker.publish("a", b"%d" % k, 2)
        self.world.turn(2)
        self.assertEqual((remote.packets(), self.rows()), ([], rows))
        self.assertEqual(self.broker.deliveries.refused, 3)
        (next_one,) = self.answer(remote, ack(PUBACK, first))
        self.assertEqual(read_publish(next_one)[:3], (b"a", b"3", 2))
        # A row that waits for PUBCOMP still takes its place
        self.assertEqual(self.answer(remote, ack(PUBREC, second)), [ack(PUBREL, second)])
        self.assertEqual(len(self.rows()), 3)
        (last,) = self.answer(remote, ack(PUBCOMP, second))
        self.assertEqual(read_publish(last)[:3], (b"a", b"4", 2))
        ids = [row[1] for row in self.rows()]
        self.assertEqual((len(set(ids)), ids[0]), (3, third))
        self.deliver(remote)
        for number in ids:
            self.answer(remote, ack(PUBREC, number), ack(PUBCOMP, number))
        self.assertEqual(self.rows(), [])


class TestWindow(BridgeCase):
    """mosquitto takes 20 QoS 2 messages of MQTT 3.1.1 that wait for PUBREL, and drops more."""

    LIMITS = {"inflight": 50, "queued": 60, "deliveries": 200, "messages": 120, "rx_bytes": 2048}  # noqa: RUF012

    def start_bridge(self, count=55, **options):
        """A bridge that `count` messages have come for, at QoS 2 and 1 in turn."""
        self.ids = {}  # packet ids by payload
        self.bridge(("a", "out", 2), **options)
        for k in range(count):
            self.broker.publish("a", b"%d" % k, 2 - k % 2)
        return self.remote()

    def sent(self, remote):
        """The payloads of what comes."""
        self.world.turn(3)
        found = []
        for data in remote.packets():
            if data[0] >> 4 == 3:
                _, payload, _, packet_id = read_publish(data)
                found.append(int(bytes(payload)))
                self.ids[found[-1]] = packet_id
        return found

    def end(self, remote, k):
        """The last acknowledgement of a message."""
        remote.send(b"" if k % 2 else ack(PUBREC, self.ids[k]))
        self.assertEqual(self.sent(remote), [])  # one of QoS 2 still takes its place
        remote.send(ack(PUBACK if k % 2 else PUBCOMP, self.ids[k]))

    def test_at_most_20_are_under_way_and_each_that_ends_lets_one_follow(self):
        for options in ({}, {"bridge_protocol_version": "mqttv31"}):
            remote = self.start_bridge(**options)
            self.assertEqual(self.sent(remote), list(range(20)))
            for k in range(35):
                self.end(remote, k)
                self.assertEqual(self.sent(remote), [k + 20])
            self.tearDown()
            self.setUp()

    def test_after_a_reconnect_the_same_20_in_order_and_then_the_others(self):
        remote = self.start_bridge()
        self.sent(remote)
        ids = self.ids
        remote.send(ack(PUBREC, ids[2]) + ack(PUBREC, ids[0]))
        self.world.turn(3)
        remote.packets()
        for _ in range(2):
            remote = self.lose(remote)
            again = [ack(PUBREL, ids[0]), publish("a", b"1", 1, ids[1], dup=True)]
            again.append(ack(PUBREL, ids[2]))
            again += [publish("a", b"%d" % k, 2 - k % 2, ids[k], dup=True) for k in range(3, 20)]
            self.world.turn(3)
            self.assertEqual(remote.packets(), again)
        for number in (ids[0], ids[2]):
            remote.send(ack(PUBCOMP, number))
        self.assertEqual(self.sent(remote), [20, 21])
        for k in range(3, 20):
            self.end(remote, k)
            self.assertEqual(self.sent(remote), [k + 19])

    def test_more_that_were_under_way_before_come_again_20_at_a_time(self):
        """The setting was higher, or a power cut has left open which were sent."""
        self.broker.settings.max_inflight_messages = 30
        self.broker.apply_settings()
        remote = self.start_bridge()
        self.assertEqual(len(self.sent(remote)), 30)
        self.broker.settings.max_inflight_messages = 0
        self.broker.apply_settings()
        remote = self.lose(remote)
        self.assertEqual(self.sent(remote), list(range(20)))
        for k in range(35):
            self.end(remote, k)
            self.assertEqual(self.sent(remote), [k + 20])

    def test_clients_mqtt_5_and_qos_0_are_not_held_to_it(self):
        client = self.world.client("c")
        client.send(subscribe(1, "a", 2))
        self.world.turn(2)
        client.packets()
        remote = self.start_bridge()
        self.assertEqual(len(self.sent(remote)), 20)
        self.assertEqual(len([data for data in client.packets() if data[0] >> 4 == 3]), 50)
        self.broker.publish("a", b"99", 0)
        self.assertEqual(self.sent(remote), [99])

    def test_a_retained_message_leaves_without_properties(self):
        self.broker.publish("a", b"kept", 0, True)
        self.bridge(("a", "out", 0))
        remote = self.remote()
        self.assertEqual(remote.packets(), [publish("a", b"kept", retain=True)])
        self.broker.publish("a", b"", 0, True)
