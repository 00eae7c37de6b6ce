"""No exception that input can cause ends the broker: the connection ends, and it is counted and
logged with its place. Those of the program's own callbacks and hooks leave the turn."""

import unittest

import packets
import packets5
from fakes import World

from slotmq import Broker, Limits, broker
from slotmq.delivery import routing
from slotmq.net import closing, loop, timers
from slotmq.platform import heap
from slotmq.protocol import connect, dispatch, subscribe

CLIENT, READER, NOBODY = "client", "reader", None
# Where it is raised, what makes the broker pass there, and whose connection it ends
PLACES = (
    (loop, "receive", packets.publish("t", b"x", 1, 7), CLIENT),
    (dispatch, "next_packet", packets.publish("t", b"x", 1, 7), CLIENT),
    (routing, "fan", packets.publish("t", b"x", 2, 7), CLIENT),
    (subscribe, "handle", packets.subscribe(1, "u", 0), CLIENT),
    (connect, "handle", packets.connect("new"), "new"),
    (broker, "send", packets.publish("t", b"x", 1, 7), READER),
    (closing, "hang_up", packets.DISCONNECT, CLIENT),
    (timers, "_count", b"", NOBODY),
)
ERRORS = ValueError, IndexError, KeyError, TypeError, OSError, NotImplementedError, UnicodeError


replaced = []  # (place, name, function, what is raised)


def raises_once(a=0, b=0, c=0, d=0, e=0, f=0, g=0):  # *args and a closure would allocate
    place, name, works, error = replaced[0]
    setattr(place, name, works)
    raise error


class Case(unittest.TestCase):
    def setUp(self):
        self.world = World(Broker(Limits(connections=8, sessions=8)))
        self.broker = self.world.broker
        del self.broker.caught  # what the loop really does
        self.lines = []
        self.broker.log = lambda bit, text: self.lines.append((bit, text))
        self.client = self.world.client("c", clean=False)
        self.reader = self.world.client("r")
        self.reader.send(packets.subscribe(1, "t", 2))
        self.world.turn(2)
        self.broker.log_mask = 1

    def healthy(self):
        """Everybody else is served."""
        self.assertEqual((heap._state[0], heap._state[1]), (0, 0))
        again = self.world.client("again")
        again.packets()
        again.send(packets.subscribe(1, "later", 1) + packets.publish("later", b"x", 1, 9))
        self.world.turn(3)
        again.answer()
        self.assertEqual(again.messages, [(b"later", b"x", 1)])

    def defects(self):
        return [text for _, text in self.lines if "a defect" in text]


class TestExceptions(Case):
    def raise_once(self, place, name, error, data):
        works = getattr(place, name)
        replaced[:] = [(place, name, works, error)]
        setattr(place, name, raises_once)
        try:
            who = self.client
            if data == packets.connect("new"):
                who = self.world.come(data)
            elif data:
                who.send(data)
            else:
                self.world.clock.ms += 300
            self.world.turn(3)
        finally:
            setattr(place, name, works)
        return who

    def test_one_at_each_place_ends_one_connection(self):
        for place, name, data, ended in PLACES:
            for kind in ERRORS[:2]:
                with self.subTest(name=name, kind=kind):
                    self.setUp()
                    if place is dispatch:
                        self.broker.fast_path = None
                    who = self.raise_once(place, name, kind("secret"), data)
                    self.assertEqual(self.broker.loop.exceptions, 1)
                    (line,) = self.defects()
                    self.assertTrue(line.startswith(kind.__name__ + ", a defect: "), line)
                    self.assertTrue("raises_once" in line and "secret" not in line, line)
                    if name != "hang_up":  # it is raised once, so that slot stays
                        self.assertEqual(who.stream.closed, ended in (CLIENT, "new"))
                    self.assertEqual(self.reader.stream.closed, ended is READER)
                    self.healthy()

    def test_each_kind(self):
        for kind in ERRORS:
            with self.subTest(kind=kind):
                self.setUp()
                self.raise_once(routing, "fan", kind("x"), packets.publish("t", b"x", 2, 7))
                self.assertEqual(len(self.defects()), 1)
                self.assertTrue(self.client.stream.closed)
                self.healthy()

    def test_it_is_in_sys(self):
        self.raise_once(routing, "fan", KeyError(1), packets.publish("t", b"x", 2, 7))
        client = self.world.client("s")
        client.send(packets.subscribe(1, "$SYS/broker/exceptions", 0))
        self.world.turn(4)
        self.assertTrue(client.packets()[-1].endswith(b"exceptions1"))

    def test_one_that_comes_back_does_not_fill_the_log(self):
        def fails(broker):
            raise ValueError

        works, timers._count = timers._count, fails
        try:
            self.world.turn(100, 200)
        finally:
            timers._count = works
        self.assertTrue(self.broker.loop.exceptions >= 90)
        self.assertEqual(len(self.defects()), 7)
        self.healthy()

    def test_what_ends_a_program_leaves_the_turn(self):
        for kind in (KeyboardInterrupt, SystemExit):
            with self.subTest(kind=kind), self.assertRaises(kind):
                self.setUp()
                self.raise_once(routing, "fan", kind(), packets.publish("t", b"x", 2, 7))
        self.assertEqual(self.broker.loop.exceptions, 0)


class Hooks:
    """Raises in one of its methods."""

    def __init__(self, name):
        for each, result in (("may_connect", 0), ("may_publish", True), ("may_subscribe", True),
                             ("auth", (0x18, None)), ("forget", None), ("on_connect", None),
                             ("on_disconnect", None), ("on_publish", None)):  # fmt: skip
            setattr(self, each, self.fails if each == name else lambda *_, r=result: r)

    def fails(self, *_):
        raise ValueError


AUTH = packets5.connect("new", properties=b"\x15" + packets.text("M"))
CALLS = (
    ("may_connect", packets.connect("new")),
    ("may_publish", packets.publish("t", b"x")),
    ("may_subscribe", packets.subscribe(2, "u", 0)),
    ("auth", AUTH),
    ("forget", AUTH + packets.DISCONNECT),
    ("on_connect", packets.connect("new")),
    ("on_disconnect", packets.DISCONNECT),
    ("on_publish", packets.publish("t", b"x")),
)


class TestOfTheProgram(Case):
    def test_one_of_its_hooks_leaves_the_turn(self):
        for name, data in CALLS:
            with self.subTest(name=name):
                self.setUp()
                self.broker.hooks = Hooks(name)
                with self.assertRaises(ValueError):
                    if data[0] >> 4 == 1:
                        self.world.come(data)
                    else:
                        self.client.send(data)
                        self.world.turn(3)
                self.broker.hooks = None
                self.assertEqual((self.broker.loop.exceptions, self.defects()), (0, []))
                self.healthy()

    def test_one_of_its_callback_leaves_the_turn(self):
        def fails(*_):
            raise KeyError

        self.broker.subscribe("t", fails)
        self.client.send(packets.publish("t", b"x"))
        with self.assertRaises(KeyError):
            self.world.turn(3)
        self.assertEqual(self.broker.loop.exceptions, 0)
        self.assertFalse(self.client.stream.closed)
        self.healthy()
