"""The sender's table as kawaii-mqtt describes it: a row for each packet whose acknowledgement is
still to come, which PUBREC turns from a stored message into a stored packet id, and which is sent
again, once and in order, after a reconnect.

Where kawaii-mqtt sends again by a timer, MQTT does so on a new connection only."""

from bridge_case import RESUMED, BridgeCase
from packets import PINGREQ, PINGRESP, PUBACK, PUBCOMP, PUBREC, PUBREL, ack, publish, read_publish

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
