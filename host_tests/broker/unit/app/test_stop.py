"""An orderly stop publishes the wills of connected clients, and the delayed wills."""

import unittest

import packets5
from fakes import Client, Stream, World
from packets import connect, subscribe

from slotmq import Broker, Limits, Settings

DELAY = b"\x18\0\0\0\x64"  # Will Delay Interval, seconds


class TestStop(unittest.TestCase):
    def setUp(self):
        self.world = World(Broker(Limits(), Settings(sys_interval=0)))

    def come(self, said):
        client = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(said)
        self.world.turn(3)
        client.packets()
        return client

    def watcher(self, level):
        if level == 4:
            return self.come(connect("w4") + subscribe(1, "will/#", 0))
        return self.come(packets5.connect("w5") + packets5.subscribe(1, "will/#", 0))

    def wills(self):
        self.come(connect("a", will=("will/plain", "x", 0)))
        will = ("will/delayed", "x", 0, DELAY)
        self.come(packets5.connect("b", will=will, expiry=200))
        gone = self.come(packets5.connect("c", will=("will/left", "x", 0, DELAY), expiry=200))
        gone.stream.ended = True
        self.world.turn(5)

    def check(self, watcher):
        self.world.loop.close()
        found = watcher.packets()
        topics = sorted(one[4 : 4 + one[3]] for one in found if one[0] == 0x30)
        self.assertEqual(topics, [b"will/delayed", b"will/left", b"will/plain"])
        self.assertEqual([one[0] for one in found[3:]], [0xE0] * (len(found) - 3))
        self.assertTrue(watcher.stream.closed)

    def test_to_who_came_before_them(self):
        for level in (4, 5):
            with self.subTest(level=level):
                self.setUp()
                watcher = self.watcher(level)
                self.wills()
                self.check(watcher)

    def test_and_to_who_came_after_them(self):
        for level in (4, 5):
            with self.subTest(level=level):
                self.setUp()
                self.wills()
                self.check(self.watcher(level))
