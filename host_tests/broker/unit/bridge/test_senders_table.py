"""The sender's table as kawaii-mqtt describes it: a row for each packet whose acknowledgement is
still to come, which PUBREC turns from a stored message into a stored packet id, and which is sent
again, once and in order, after a reconnect.

Where kawaii-mqtt sends again by a timer, MQTT does so on a new connection only."""

from bridge_case import BridgeCase
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
)

NONE = 0xFFFF
AWAITED = {1: PUBACK, 2: PUBREC, 3: PUBCOMP}  # by state of a delivery
ENDS, CLOSES = (None, None), None
STAYS = PUBREL, PUBCOMP  # PUBREL is the answer, and PUBCOMP is awaited
# What a row awaits (NONE: there is no such row); what PUBACK, PUBREC and PUBCOMP do: the answer
# and what is awaited then, or the connection ends
TRANSITIONS = {
    PUBACK: (ENDS, CLOSES, CLOSES),
    PUBREC: (CLOSES, STAYS, CLOSES),
    PUBCOMP: (CLOSES, STAYS, ENDS),
    NONE: ((None, None), (PUBREL, None), (None, None)),
}
CELLS = [
    (awaited, event, then)
    for awaited, cells in TRANSITIONS.items()
    for event, then in zip((PUBACK, PUBREC, PUBCOMP), cells)  # noqa: B905 - MicroPython
]


class TestSendersTable(BridgeCase):
    LIMITS = {"inflight": 3, "queued": 2}  # noqa: RUF012

    def rows(self):
        """Packet id: (packet that is awaited, is the message stored?) of each row, in order."""
        deliveries = self.broker.deliveries
        found = {}
        entry = self.broker.sessions.head[self.one.session]
        while entry != NONE:
            if deliveries.state[entry]:  # 0: not sent yet
                has_message = deliveries.msg[entry] != NONE
                found[entry + 1] = AWAITED[deliveries.state[entry]], has_message
            entry = deliveries.next[entry]
        return found

    def sent(self):
        """A bridge that has sent 0, 1 and 2 at QoS 1, 2, 2, and PUBREL for the second.

        -> the other end, the packet ids by what they await, what is sent again."""
        self.bridge(("a", "out", 2), keepalive_interval=60)
        remote = self.remote()
        for k, qos in enumerate((1, 2, 2)):
            self.broker.publish("a", b"%d" % k, qos)
        self.world.turn(2)
        first, second, third = [read_publish(data)[3] for data in remote.packets()]
        stored = self.broker.messages.count[0]
        self.assertEqual(self.answer(remote, ack(PUBREC, second)), [ack(PUBREL, second)])
        self.assertEqual(self.broker.messages.count[0], stored - 1)
        wanted = {first: (PUBACK, True), second: (PUBCOMP, False), third: (PUBREC, True)}
        self.assertEqual(self.rows(), wanted)
        again = [publish("a", b"0", 1, first, dup=True), ack(PUBREL, second)]
        again.append(publish("a", b"2", 2, third, dup=True))
        return remote, {PUBACK: first, PUBCOMP: second, PUBREC: third, NONE: 999}, again

    def answer(self, remote, *packets):
        """The other broker sends these; -> what the bridge sends then."""
        remote.send(b"".join(packets))
        self.world.turn(2)
        return remote.packets()

    def end(self, remote, ids):
        """The right acknowledgements end all rows."""
        self.answer(remote, ack(PUBACK, ids[PUBACK]), ack(PUBREC, ids[PUBREC]))
        self.answer(remote, ack(PUBCOMP, ids[PUBCOMP]), ack(PUBCOMP, ids[PUBREC]))
        self.assertEqual((self.rows(), self.broker.messages.count[0]), ({}, 0))

    def test_each_acknowledgement_moves_its_own_row_or_ends_the_connection(self):
        for awaited, event, then in self.each(*CELLS):
            remote, ids, again = self.sent()
            packet_id = ids[awaited]
            rows = self.rows()
            found = self.answer(remote, ack(event, packet_id))
            self.assertEqual(remote.stream.closed, then is CLOSES, (awaited, event))
            if then is CLOSES:
                self.assertEqual(self.rows(), rows)
                remote = self.lose(remote)
                self.assertEqual(remote.packets(), again)
            else:
                answer, now = then
                self.assertEqual(found, [ack(answer, packet_id)] if answer else [])
                rows.pop(packet_id, None) if not now else rows.update({packet_id: (now, False)})
                self.assertEqual(self.rows(), rows, (awaited, event))
            if then is CLOSES or awaited == NONE:
                self.end(remote, ids)

    def test_after_a_reconnect_each_row_is_sent_once_and_none_by_time(self):
        remote, ids, again = self.sent()
        rows = self.rows()
        for _ in range(3):
            remote = self.lose(remote)
            self.assertEqual((remote.packets(), self.rows()), (again, rows))
            for _ in range(5):
                self.wait(60)
                self.assertEqual(remote.packets(), [PINGREQ])
                remote.send(PINGRESP)
        self.end(remote, ids)

    def test_a_full_table_forgets_no_row(self):
        remote, ids, _ = self.sent()
        rows = self.rows()
        for k in range(3, 8):  # two wait, three are refused and counted
            self.broker.publish("a", b"%d" % k, 2)
        self.world.turn(2)
        self.assertEqual((remote.packets(), self.rows()), ([], rows))
        self.assertEqual(self.broker.deliveries.refused, 3)
        for first, packet_id, payload in (
            (PUBACK, ids[PUBACK], b"3"),
            (PUBCOMP, ids[PUBCOMP], b"4"),
        ):
            (data,) = self.answer(remote, ack(first, packet_id))
            self.assertEqual(read_publish(data)[:3], (b"a", payload, 2))
        # A row that waits for PUBCOMP still takes its place
        self.assertEqual(self.answer(remote, ack(PUBREC, ids[PUBREC])), [ack(PUBREL, ids[PUBREC])])
        found = list(self.rows())
        self.assertEqual((len(found), ids[PUBREC] in found), (3, True))
        for number in found:
            self.answer(remote, ack(PUBREC, number), ack(PUBCOMP, number))
        self.assertEqual(self.rows(), {})


class TestWindow(BridgeCase):
    """mosquitto takes 20 QoS 2 messages of MQTT 3.1.1 that wait for PUBREL, and drops more."""

    LIMITS = {"inflight": 50, "queued": 60, "deliveries": 200, "messages": 120, "rx_bytes": 2048}  # noqa: RUF012

    def start_bridge(self, **options):
        """A bridge that 55 messages have come for, at QoS 2 and 1 in turn."""
        self.ids = {}  # packet ids by payload
        self.bridge(("a", "out", 2), **options)
        for k in range(55):
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

    def each_that_ends_lets_one_follow(self, remote, numbers):
        for k in numbers:
            remote.send(b"" if k % 2 else ack(PUBREC, self.ids[k]))
            self.assertEqual(self.sent(remote), [])  # one of QoS 2 still takes its place
            remote.send(ack(PUBACK if k % 2 else PUBCOMP, self.ids[k]))
            self.assertEqual(self.sent(remote), [k + 20])

    def test_at_most_20_are_under_way_and_each_that_ends_lets_one_follow(self):
        for version in self.each("mqttv311", "mqttv31"):
            client = self.reader("a", qos=2)
            remote = self.start_bridge(bridge_protocol_version=version)
            self.assertEqual(self.sent(remote), list(range(20)))
            # Neither clients nor QoS 0 are held to it.
            self.assertEqual(len([data for data in client.packets() if data[0] >> 4 == 3]), 50)
            self.broker.publish("a", b"99", 0)
            self.assertEqual(self.sent(remote), [99])
            self.each_that_ends_lets_one_follow(remote, range(35))

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
        for k in (0, 1, 2):
            remote.send(ack(PUBACK if k == 1 else PUBCOMP, ids[k]))
            self.assertEqual(self.sent(remote), [k + 20])
        self.each_that_ends_lets_one_follow(remote, range(3, 20))

    def test_more_that_were_under_way_before_come_again_20_at_a_time(self):
        """The setting was higher, or a power cut has left open which were sent."""
        settings = self.broker.settings
        settings.max_inflight_messages = 30
        self.broker.apply_settings()
        remote = self.start_bridge()
        self.assertEqual(len(self.sent(remote)), 30)
        settings.max_inflight_messages = 0
        self.broker.apply_settings()
        remote = self.lose(remote)
        self.assertEqual(self.sent(remote), list(range(20)))
        self.each_that_ends_lets_one_follow(remote, range(35))
