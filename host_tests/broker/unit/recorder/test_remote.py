"""What clients ask of a recorder and tell it: nothing that they say ends the broker."""

import json
import os
from binascii import hexlify
from struct import pack, unpack

import packets
import packets5
import scratch
from recorder_case import ANCHOR, EVENT, whole_records
from turns5_case import Turns5

from slotmq import Limits
from slotmq.platform import ondemand
from slotmq.recorder import files, start

U32 = 1 << 32
SEQ = 4  # of the state
ASKED = '{"segment":%s,"offset":%s,"length":%s,"reply":%s}'
WRONG = (
    "",
    "{}",
    "7",
    "[" * 1500,
    ASKED % (0, 0, 5, 5),
    ASKED % (0, 0, 5, "null"),
    ASKED % (0, 0, 5, '["x"]'),
    ASKED % (0, 0, 5, '"$SYS/x"'),
    ASKED % (0, 0, 5, '"a/#"'),
    ASKED % (0, 0, 5, '""'),
    ASKED % ("1e999", 0, 5, '"x"'),
    ASKED % (U32, 0, 5, '"x"'),
    ASKED % (-1, 0, 5, '"x"'),
    ASKED % (0, U32, 5, '"x"'),
    ASKED % (0, -1, 5, '"x"'),
    ASKED % (0, 0, -1, '"x"'),
    ASKED % (0, 0, "[]", '"x"'),
    ASKED % ('"' + "9" * 500 + '"', 0, 5, '"x"'),
)
NO_TIMES = (
    b"",
    b" ",
    b"\xff",
    b"noon",
    b"1795320988 x",
    b"1795320988 4294967296",
    b"1795320988 40 sundial",
    b"1795320988 40 ntp more",
    b"1795320988.-5",
    b"4294967296",
    b"-1795320988",
    b"9" * 500,
)


class TestRecordRemote(Turns5):
    def start(self, **settings):
        super().start(**settings)
        mine = self.broker.settings
        mine.remote_admin = True
        mine.record_segment_size = 4096
        mine.record = (b"#",)
        mine.record_events = False
        self.folder = scratch.path() + "/"
        os.mkdir(self.folder)  # noqa: PTH102
        self.rec = start.attach(self.broker, mine, self.folder).rec
        self.rec.wall = None  # nobody has told the time yet

    def tearDown(self):
        # what it has told is retained
        self.broker.record.remote = False
        self.broker.publish(self.topic("head"), b"", retain=True)
        files.close(self.rec)
        super().tearDown()
        ondemand.forget_all()

    def topic(self, what):
        return f"$SLOTMQ/record/{hexlify(self.rec.board).decode()}/{what}"

    def say(self, client, data):
        client.send(data)
        self.world.turn(3)

    def answers(self, client):
        return [data for data in client.packets() if data[0] == 0x30]

    def test_what_is_not_understood_is_dropped(self):
        asks = self.come(packets.connect("asks"))
        others = self.come(packets.connect("others"))
        for payload in WRONG:
            self.say(asks, packets.publish(self.topic("get"), payload.encode()))
        for payload in NO_TIMES:
            self.say(asks, packets.publish("$SLOTMQ/time", payload))
        for client in (asks, others):
            client.packets()
            self.say(client, b"\xc0\0")
            self.assertEqual(client.packets(), [b"\xd0\0"])
        self.assertEqual(self.rec.wall, None)

    def test_what_is_asked_at_the_edges_is_answered(self):
        client = self.come(packets.connect("c"))
        self.say(client, packets.subscribe(1, "mine", 0))
        self.rec.flush()
        length = self.rec.synced
        for segment, at, there, n in (
            (0, 0, length, 32),
            (0, length, length, 0),
            (0, U32 - 1, length, 0),
            (U32 - 1, 0, U32 - 1, 0),
        ):
            client.packets()
            asked = {"segment": segment, "offset": at, "length": 32, "reply": "mine"}
            self.say(client, packets.publish(self.topic("get"), json.dumps(asked).encode()))
            (answer,) = self.answers(client)
            at_head = answer.index(pack("<II", segment, at))
            self.assertEqual(unpack("<I", answer[at_head + 8 : at_head + 12])[0], there)
            self.assertEqual(len(answer) - at_head - 12, n)

    def test_who_wants_nothing_of_its_own_is_answered(self):
        """The answer is the broker's: No Local is of what the client publishes."""
        client = self.come(packets5.connect("c"))
        self.say(client, packets5.subscribe(1, "mine", 4))
        asked = {"segment": 0, "offset": 0, "length": 32, "reply": "mine"}
        for qos in (0, 1):
            client.packets()
            said = packets5.publish(self.topic("get"), json.dumps(asked).encode(), qos, 7)
            self.say(client, said)
            self.assertEqual(len(self.answers(client)), 1)
        self.say(client, packets5.publish("mine", b"own"))
        self.assertEqual(self.answers(client), [])

    def test_a_time_of_any_bound_is_told_in_the_next_segment_or_not_at_all(self):
        client = self.come(packets.connect("c"))
        for said in (b"1795320988 4294967295", b"4294967295 40"):
            self.say(client, packets.publish("$SLOTMQ/time", said))
            self.assertTrue(self.rec.wall is not None)
            self.wait(30)
            before = self.rec.segment
            while self.rec.segment == before:
                self.say(client, packets.publish("t", b"x" * 500))
            self.assertEqual(self.rec.wall, None)
            self.assertFalse(client.stream.closed)

    def test_a_folder_that_is_gone_does_not_end_the_broker(self):
        client = self.come(packets.connect("c"))
        self.rec.is_told = False
        there = self.rec.folder
        self.rec.folder += "nowhere/"
        self.wait(30)
        self.rec.folder = there
        self.say(client, b"\xc0\0")
        self.assertTrue(b"\xd0\0" in client.packets())

    def test_a_head_that_finds_no_room_is_tried_again_without_a_word(self):
        """An event of each refusal would be one more to be flushed and told, for ever."""
        self.tearDown()
        self.start(limits=Limits(retained=1))
        self.broker.record.events = True
        self.broker.record.low = 0  # no heap is ever lower
        client = self.come(packets.connect("c", keep_alive=0))
        self.say(client, packets.publish("kept", b"x", retain=True))
        self.wait(30)
        self.assertFalse(self.rec.is_told)
        before = self.rec.o[SEQ]
        self.wait(60)
        self.assertEqual(self.rec.o[SEQ], before)
        self.say(client, packets.publish("kept", b"", retain=True))
        self.wait(30)
        self.assertTrue(self.rec.is_told)
        self.say(client, packets.subscribe(1, "$SLOTMQ/record/+/head", 0))
        self.assertTrue(b"/head" in b"".join(client.packets()))

    def days(self, kind, flags):
        """Such records of eight days in which nothing passes."""
        client = self.come(packets.connect("c", keep_alive=0))
        if kind == ANCHOR:
            self.say(client, packets.publish("$SLOTMQ/time", b"1795320988 40 ntp"))
        for _ in range(8 * 24):
            self.world.turn(2, ms=1800000)
        self.assertTrue(self.rec.flush())
        found = []
        for segment in files.look(self.rec):
            with open(files.path(self.rec, segment), "rb") as file:  # noqa: PTH123
                found += [r for r in whole_records(file.read()) if r[:2] == (kind, flags)]
        return found

    def test_the_time_is_told_again_while_nothing_passes(self):
        for events in (True, False):
            self.tearDown()
            self.start()
            self.broker.record.events = events
            found = self.days(ANCHOR, 4)
            days = [(unpack("<I", each[3][:4])[0] - 1795320988) // 86400 for each in found]
            self.assertEqual(days, [0, 3, 6])

    def test_where_none_is_known_the_ticks_are_told(self):
        self.assertEqual(len(self.days(EVENT, 10)), 2)
