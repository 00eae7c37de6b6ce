"""What clients ask of a recorder and publish to it; no payload stops the broker."""

import json
from struct import pack, unpack

import packets
import packets5
from recorder_case import ANCHOR, EVENT, BrokerRecorderCase

from slotmq import Limits
from slotmq.platform import log

U32 = 1 << 32
SEQ = 4  # of the state
REQUEST = '{"segment":%s,"offset":%s,"length":%s,"reply":%s}'
WRONG_REQUESTS = ["", "{}", "7", "[" * 1500]
WRONG_REQUESTS += [
    REQUEST % (0, 0, 5, reply) for reply in (5, "null", '["x"]', '"$SYS/x"', '"a/#"', '""')
]
WRONG_REQUESTS += [
    REQUEST % row
    for row in (
        ("1e999", 0, 5, '"x"'),
        (U32, 0, 5, '"x"'),
        (-1, 0, 5, '"x"'),
        ('"' + "9" * 500 + '"', 0, 5, '"x"'),
        (0, U32, 5, '"x"'),
        (0, -1, 5, '"x"'),
        (0, 0, -1, '"x"'),
        (0, 0, "[]", '"x"'),
    )
]
WRONG_TIMES = b"|".join(
    (
        b"| |\xff|noon|1795320988 x|1795320988 4294967296|1795320988 40 sundial",
        b"1795320988 40 ntp more|1795320988.-5|4294967296|-1795320988",
        b"9" * 500,
    )
).split(b"|")


class TestRemote(BrokerRecorderCase):
    def start(self, limits=None):
        super().start(limits, remote=True)
        self.rec.wall = None  # the time of day is not known

    def answers(self, client):
        return [data for data in client.packets() if data[0] == 0x30]

    def request(self, segment=0, offset=0):
        asked = {"segment": segment, "offset": offset, "length": 32, "reply": "mine"}
        return self.topic("get"), json.dumps(asked).encode()

    def test_the_log_warns_once_a_minute_of_each_client(self):
        lines = []
        write, log.write = log.write, lambda bit, text: lines.append(text)
        self.broker._log_mask = 2
        try:
            clients = [self.come(packets.connect(name)) for name in ("a", "b")]
            for _ in range(3):
                for client in clients:
                    self.send(client, packets.publish("$SLOTMQ/time", b"noon"))
            self.assertEqual(lines, ["The recorder: '$SLOTMQ/time': not understood."] * 2)
        finally:
            log.write = write

    def test_wrong_payloads_are_ignored(self):
        asks = self.come(packets.connect("asks"))
        others = self.come(packets.connect("others"))
        for payload in WRONG_REQUESTS:
            self.send(asks, packets.publish(self.topic("get"), payload.encode()))
        for payload in WRONG_TIMES:
            self.send(asks, packets.publish("$SLOTMQ/time", payload))
        for client in (asks, others):
            client.packets()
            self.send(client, packets.PINGREQ)
            self.assertEqual(client.packets(), [packets.PINGRESP])
        self.assertEqual(self.rec.wall, None)

    def test_requests_at_the_ends_of_the_ring_are_answered(self):
        client = self.come(packets.connect("c"))
        self.send(client, packets.subscribe(1, "mine", 0))
        self.rec.flush()
        length = self.rec.synced
        for segment, at, there, n in (
            (0, 0, length, 32),
            (0, length, length, 0),
            (0, U32 - 1, length, 0),
            (U32 - 1, 0, U32 - 1, 0),
        ):
            client.packets()
            self.send(client, packets.publish(*self.request(segment, at)))
            (answer,) = self.answers(client)
            at_head = answer.index(pack("<II", segment, at))
            self.assertEqual(unpack("<I", answer[at_head + 8 : at_head + 12])[0], there)
            self.assertEqual(len(answer) - at_head - 12, n)

    def test_a_subscriber_with_no_local_gets_the_answer(self):
        """The broker publishes the answer, not the client."""
        client = self.come(packets5.connect("c"))
        self.send(client, packets5.subscribe(1, "mine", 4))
        for qos in (0, 1):
            client.packets()
            self.send(client, packets5.publish(*self.request(), qos, 7))
            self.assertEqual(len(self.answers(client)), 1)
        self.send(client, packets5.publish("mine", b"own"))
        self.assertEqual(self.answers(client), [])

    def test_a_time_that_no_record_can_hold_later_is_forgotten(self):
        client = self.come(packets.connect("c"))
        for time in (b"1795320988 4294967295", b"4294967295 40"):
            self.send(client, packets.publish("$SLOTMQ/time", time))
            self.assertTrue(self.rec.wall is not None)
            self.wait(30)
            before = self.rec.segment
            while self.rec.segment == before:
                self.send(client, packets.publish("t", b"x" * 500))
            self.assertEqual(self.rec.wall, None)
            self.assertFalse(client.stream.closed)

    def test_a_missing_folder_does_not_stop_the_broker(self):
        client = self.come(packets.connect("c"))
        self.rec.head_is_current = False
        there = self.rec.folder
        self.rec.folder += "nowhere/"
        self.wait(30)
        self.rec.folder = there
        self.send(client, packets.PINGREQ)
        self.assertTrue(packets.PINGRESP in client.packets())

    def test_a_head_that_is_refused_is_published_later_and_causes_no_events(self):
        """An event would need a new head, and so on for ever."""
        self.restart(Limits(retained=1))
        self.broker.record.events = True
        self.broker.record.low = 0  # no heap is ever lower
        client = self.come(packets.connect("c", keep_alive=0))
        self.send(client, packets.publish("kept", b"x", retain=True))
        self.wait(30)
        self.assertFalse(self.rec.head_is_current)
        before = self.rec.o[SEQ]
        self.wait(60)
        self.assertEqual(self.rec.o[SEQ], before)
        self.send(client, packets.publish("kept", b"", retain=True))
        self.wait(30)
        self.assertTrue(self.rec.head_is_current)
        self.send(client, packets.subscribe(1, "$SLOTMQ/record/+/head", 0))
        self.assertTrue(b"/head" in b"".join(client.packets()))

    def records_of_eight_days(self, kind, flags):
        """Payloads of such records; no message passes."""
        client = self.come(packets.connect("c", keep_alive=0))
        if kind == ANCHOR:
            self.send(client, packets.publish("$SLOTMQ/time", b"1795320988 40 ntp"))
        for _ in range(8 * 24):
            self.world.turn(2, ms=1800000)
        return [record[3] for record in self.records() if record[:2] == (kind, flags)]

    def test_the_time_is_recorded_again_while_no_message_passes(self):
        for events in (True, False):
            self.restart()
            self.broker.record.events = events
            found = self.records_of_eight_days(ANCHOR, 4)
            days = [(unpack("<I", each[:4])[0] - 1795320988) // 86400 for each in found]
            self.assertEqual(days, [0, 3, 6])

    def test_without_a_known_time_the_ticks_are_recorded(self):
        self.assertEqual(len(self.records_of_eight_days(EVENT, 10)), 2)
