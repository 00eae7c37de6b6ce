"""A client may publish below $SLOTMQ only the broker's requests, and nothing below $SYS. No client
may publish below $share, which no filter matches."""

import os
import unittest

import packets5
from fakes import World
from packets import connect, publish, read_publish, subscribe
from recorder_case import attach, messages, new_folder

from slotmq import Broker, Limits, Settings
from slotmq.platform import ondemand
from slotmq.recorder import files

BOARD = "0123456789abcdef"
HEAD = f"$SLOTMQ/record/{BOARD}/head"
REQUESTS = "$SLOTMQ/time", f"$SLOTMQ/record/{BOARD}/get", f"$SLOTMQ/record/{BOARD[8:]}/get"
BROKERS = (
    HEAD,
    "$SLOTMQ",
    "$SLOTMQ/",
    "$SLOTMQ/time/x",
    "$SLOTMQ/record/get",
    "$SLOTMQ/record/a/b/get",
)
RESERVED = "$SYS/a", "$share/a", "$share/", "$share/a/b", "$share/a/b/c"
OTHERS = "$share", "$shares/a", "$SLOT", "$SLOTMQX/a", "$other/a", "a/$SLOTMQ/b"


class TestReservedTopics(unittest.TestCase):
    def setUp(self):
        filters = "#", "$share", "$shares/#", "$SLOT/#", "$SLOTMQX/#", "$other/#", "$SLOTMQ/#"
        filters += ("$SYS/#",)
        self.world = World(Broker(Limits(connections=6), Settings(sys_interval=0)))
        self.folder = new_folder()
        record = tuple([each.encode() for each in filters])
        self.interceptor = attach(self.world.broker, self.folder, record=record, remote_admin=True)
        self.listener = self.world.client("listener")
        for each in filters:
            self.listener.send(subscribe(1, each, 0))
        self.world.turn(3)
        self.listener.packets()

    def tearDown(self):
        files.close(self.interceptor.rec)
        ondemand.forget_all()

    def delivered(self):
        self.world.turn(4)
        return [read_publish(data)[0].decode() for data in self.listener.packets()]

    def connected(self, connect):
        client = self.world.come(connect)
        client.packets()
        return client

    def test_a_publish_of_a_client(self):
        older, newer = self.connected(connect("older")), self.connected(packets5.connect("newer"))
        for client, how in ((older, publish), (newer, packets5.publish)):
            for qos in (0, 1):
                for retain in (False, True):
                    for topics, count in ((REQUESTS, 1), (OTHERS, 1), (BROKERS, 0), (RESERVED, 0)):
                        for topic in topics:
                            client.send(how(topic, b"x", qos, 9, retain=retain))
                            self.assertEqual(self.delivered(), [topic] * count)
                            answer = client.packets()
                            if qos:
                                reason = b"" if count or client is older else b"\x87"
                                self.assertEqual(answer[0][4:], reason)
        for topics in (BROKERS, RESERVED):
            for topic in topics:
                found = self.world.broker.retained.find(topic.encode(), 0, len(topic))
                self.assertEqual(found, 0xFFFF)
        self.interceptor.rec.flush()
        recorded = set()
        for name in os.listdir(self.folder):  # noqa: PTH208
            with open(self.folder + name, "rb") as file:  # noqa: PTH123
                for message in messages(file.read()):
                    recorded.add(message[1].decode())
        self.assertEqual(recorded, set(REQUESTS + OTHERS))

    def test_a_will_of_a_client(self):
        sent = (REQUESTS[0], 1), ("$other/a", 1), (HEAD, 0), (RESERVED[0], 0), (RESERVED[3], 0)
        for topic, count in sent:
            with self.subTest(topic=topic):
                self.connected(connect("a", will=(topic, "x", 0))).leave()
                self.assertEqual(self.delivered(), [topic] * count)
                self.connected(packets5.connect("a", will=(topic, "x", 0, b""))).leave()
                self.assertEqual(self.delivered(), [topic] * count)

    def test_a_publish_of_the_program(self):
        for topic in ("$SYS/a", "$share/a/b"):
            self.assertRaises(ValueError, self.world.broker.publish, topic, b"x")
        self.assertTrue(self.world.broker.publish(HEAD, b"x"))
        self.assertEqual(self.delivered(), [HEAD])
