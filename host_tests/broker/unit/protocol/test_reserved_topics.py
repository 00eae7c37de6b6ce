"""A client may publish below $SLOTMQ only the broker's requests, and nothing below $SYS. No client
may publish below $share, which no filter matches."""

import os
import unittest

import packets5
import scratch
from fakes import Client, Stream, World
from packets import connect, publish, read_publish, subscribe
from recorder_case import messages

from slotmq import Broker, Limits, Settings
from slotmq.platform import ondemand
from slotmq.recorder import files, start

BOARD = "0123456789abcdef"
HEAD = f"$SLOTMQ/record/{BOARD}/head"
ASKS = "$SLOTMQ/time", f"$SLOTMQ/record/{BOARD}/get", f"$SLOTMQ/record/{BOARD[8:]}/get"
OWN = HEAD, "$SLOTMQ", "$SLOTMQ/", "$SLOTMQ/time/x", "$SLOTMQ/record/get", "$SLOTMQ/record/a/b/get"
NOBODYS = "$SYS/a", "$share/a", "$share/", "$share/a/b", "$share/a/b/c"
OTHERS = "$share", "$shares/a", "$SLOT", "$SLOTMQX/a", "$other/a", "a/$SLOTMQ/b"


class TestReservedTopics(unittest.TestCase):
    def setUp(self):
        settings = Settings(sys_interval=0)
        filters = "#", "$share", "$shares/#", "$SLOT/#", "$SLOTMQX/#", "$other/#", "$SLOTMQ/#"
        filters += ("$SYS/#",)
        settings.record = tuple([each.encode() for each in filters])
        settings.remote_admin = True
        settings.record_events = False
        self.world = World(Broker(Limits(connections=6), settings))
        folder = scratch.path() + "/"
        os.mkdir(folder)  # noqa: PTH102
        self.interceptor = start.attach(self.world.broker, settings, folder)
        self.folder = folder
        self.listener = self.world.client("listener")
        for each in filters:
            self.listener.send(subscribe(1, each, 0))
        self.world.turn(3)
        self.listener.packets()

    def tearDown(self):
        files.close(self.interceptor.rec)
        ondemand.forget_all()

    def heard(self):
        self.world.turn(4)
        return [read_publish(data)[0].decode() for data in self.listener.packets()]

    def come(self, said):
        client = Client(Stream())
        client.send(said)
        self.world.listener.waiting.append(client.stream)
        self.world.turn(2)
        client.packets()
        return client

    def test_what_a_client_publishes(self):
        three, five = self.come(connect("three")), self.come(packets5.connect("five"))
        for client, how in ((three, publish), (five, packets5.publish)):
            for qos in (0, 1):
                for retain in (False, True):
                    for topics, count in ((ASKS, 1), (OTHERS, 1), (OWN, 0), (NOBODYS, 0)):
                        for topic in topics:
                            client.send(how(topic, b"x", qos, 9, retain=retain))
                            self.assertEqual(self.heard(), [topic] * count)
                            answer = client.packets()
                            if qos:
                                reason = b"" if count or client is three else b"\x87"
                                self.assertEqual(answer[0][4:], reason)
        for topics in (OWN, NOBODYS):
            for topic in topics:
                found = self.world.broker.retained.find(topic.encode(), 0, len(topic))
                self.assertEqual(found, 0xFFFF)
        self.interceptor.rec.flush()
        recorded = set()
        for name in os.listdir(self.folder):  # noqa: PTH208
            with open(self.folder + name, "rb") as file:  # noqa: PTH123
                for message in messages(file.read()):
                    recorded.add(message[1].decode())
        self.assertEqual(recorded, set(ASKS + OTHERS))

    def test_wills(self):
        sent = (ASKS[0], 1), ("$other/a", 1), (HEAD, 0), (NOBODYS[0], 0), (NOBODYS[3], 0)
        for topic, count in sent:
            with self.subTest(topic=topic):
                self.come(connect("a", will=(topic, "x", 0))).leave()
                self.assertEqual(self.heard(), [topic] * count)
                self.come(packets5.connect("a", will=(topic, "x", 0, b""))).leave()
                self.assertEqual(self.heard(), [topic] * count)

    def test_the_program_itself_is_no_client(self):
        for topic in ("$SYS/a", "$share/a/b"):
            self.assertRaises(ValueError, self.world.broker.publish, topic, b"x")
        self.assertTrue(self.world.broker.publish(HEAD, b"x"))
        self.assertEqual(self.heard(), [HEAD])
