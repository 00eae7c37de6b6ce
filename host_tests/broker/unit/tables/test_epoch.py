"""A hundred years: at the end of each epoch the clock's zero moves, and all stored times with it.

Turns of the real loop cross the first boundary, one in the middle and the last one. Each timer
fires at the same time as without a boundary."""

import packets
import packets5
from epoch_case import EPOCH, LEAST, MOST, NEVER, TIMES, EpochCase
from memory_medium import MemoryMedium

from slotmq.platform import ondemand
from slotmq.tables import epoch


class Lwip:
    def __init__(self, n):
        self.since = [0] * n
        self.gone_until = 0

    def tick(self):
        pass


class TestClock(EpochCase):
    def test_time_goes_on_at_the_largest_small_integer(self):
        self.come(packets.connect("a", keep_alive=2))
        b = self.broker
        b.now = b.clock[0] = b.journal.saved = MOST - 5
        b.conns.last_activity[0] = b.now
        before = b.now + b.carried[7] * EPOCH
        self.tenths(29)
        self.assertEqual(b.now + b.carried[7] * EPOCH, before + 29)
        self.assertEqual(b.connected, 1)
        self.tenths(4)
        self.assertEqual(b.connected, 0)
        self.check()

    def test_a_hundred_years(self):
        there = self.come(packets.connect("there", keep_alive=10))
        there.packets()
        away = packets5.connect("away", clean=False, expiry=0xFFFFFFFF)
        self.come(away).leave()
        self.tenths(3)
        for k in range(TIMES):
            self.near(35)
            self.assertEqual(self.broker.carried[7], k)
            there.send(packets.PINGREQ)
            self.tenths(40)
            self.assertEqual(self.broker.carried[7], k + 1)
            self.assertEqual(there.packets(), [packets.PINGRESP])
            self.check()
        self.assertEqual(self.broker.connected, 1)
        self.assertEqual(self.broker.sessions.names.count(), 2)
        seconds = (TIMES * EPOCH + self.broker.now) // 10
        systopics = ondemand.take("status.sys_topics", self.broker.now)
        self.assertEqual(systopics.VALUES["uptime"](self.broker.sys), f"{seconds} seconds")

    def test_every_stored_time_moves_by_the_same(self):
        """Each has a time of its own, so that none is forgotten."""
        b, c, loop, five = self.broker, self.broker.conns, self.world.loop, self.five
        loop.lwip = Lwip(c.slots)
        b.now = b.clock[0] = EPOCH + 7
        lists = [c.opened, c.last_activity, c.buffered_since, b.sessions.progress, b.sessions.left]
        lists += [five.will_at, five.expires, loop.lwip.since]
        for number, column in enumerate(lists):
            for i in range(len(column)):
                column[i] = EPOCH + 100 * number + i + 1
        five.next_due = EPOCH + 2001
        b.sys.next_round = EPOCH + 2002
        loop.next_tick = EPOCH + 2003
        loop.lwip.gone_until = EPOCH + 2004
        b.journal.saved = EPOCH + 2005
        b.journal.retry_at = EPOCH + 2006
        before = self.times()
        epoch.take(b, EPOCH)
        after = self.times()
        for i, (name, then) in enumerate(before):
            if name != "will_since":  # see TestWill
                self.assertEqual(after[i], (name, then - EPOCH))
        self.assertFalse(b.journal.whole)

    def test_never_and_long_ago_do_not_change(self):
        b, five = self.broker, self.five
        b.now = EPOCH
        five.expires[0] = 0
        five.expires[1] = EPOCH  # has expired just now: not 0, which is never
        five.expires[2] = LEAST
        b.sessions.left[0] = LEAST
        five.next_due = NEVER
        epoch.take(b, EPOCH)
        self.assertEqual(list(five.expires[:3]), [0, -1, LEAST])
        self.assertEqual(b.sessions.left[0], LEAST)
        self.assertEqual(five.next_due, NEVER)

    def test_after_a_memory_error_it_is_tried_again(self):
        self.near(1)
        client = self.come(packets.connect("a", keep_alive=1))
        take = ondemand.take

        def fails(name, now):
            if name == "tables.epoch":
                raise MemoryError
            return take(name, now)

        ondemand.take = fails
        try:
            self.tenths(20)
        finally:
            ondemand.take = take
        self.assertTrue(client.stream.closed)  # meanwhile time goes on
        self.assertTrue(EPOCH < self.broker.now < EPOCH + 25)
        self.tenths(3)
        self.check()
        self.assertEqual(self.broker.carried[7], 1)

    def test_a_module_loaded_before_the_boundary_is_unloaded(self):
        before = ondemand.IS_SMALL, ondemand.loaded
        ondemand.IS_SMALL, ondemand.loaded = True, {}
        try:
            ondemand.take("config.budget", EPOCH - 1)
            ondemand.tick(EPOCH)
            self.assertTrue("config.budget" in ondemand.loaded)
            ondemand.tick(1)
            self.assertFalse("config.budget" in ondemand.loaded)
        finally:
            ondemand.IS_SMALL, ondemand.loaded = before


class TestConnections(EpochCase):
    """Each begins a second before the boundary; epochs 1, 60 and the last one."""

    def each(self, test):
        for k in (0, 60, TIMES - 1):
            with self.subTest(epoch=k):
                self.medium = MemoryMedium()
                self.start()
                self.broker.carried[7] = k
                self.near(10)
                test()

    def test_packet_timeout_of_a_packet_byte_by_byte(self):
        self.each(self.slow_packet)

    def slow_packet(self):
        client = self.come(packets.connect("a") + b"\x30\x70\x00\x01t")
        for _ in range(6):
            self.tenths(10)
            client.send(b"x")
        self.passes(10, client)

    def passes(self, tenths, client):
        """The client is disconnected after so many tenths of a second, or up to three later."""
        self.tenths(tenths - 1)
        self.assertFalse(client.stream.closed)
        self.tenths(4)
        self.assertTrue(client.stream.closed)
        self.check()

    def test_keep_alive_connect_timeout_and_packet_timeout(self):
        for first, tenths in (
            (packets.connect("a", keep_alive=2), 30),
            (b"", 150),
            (packets.connect("a") + b"\x30\x09", 70),
        ):
            self.each(lambda first=first, tenths=tenths: self.passes(tenths, self.come(first)))

    def test_retry_interval(self):
        self.each(self.retry)

    def retry(self):
        client = self.come(packets.connect("a", clean=False) + packets.subscribe(1, "t", 1))
        client.send(packets.publish("t", b"x", 1, 1))
        self.tenths(1)
        client.packets()
        self.tenths(196)
        self.assertEqual(client.packets(), [])
        self.tenths(6)
        self.assertEqual([p[0] for p in client.packets()], [0x3A])
        self.tenths(190)
        self.assertEqual(client.packets(), [])
        self.tenths(12)
        self.assertEqual([p[0] for p in client.packets()], [0x3A])

    def test_rounds_of_sys(self):
        self.each(self.rounds)

    def rounds(self):
        asks = packets.subscribe(1, "$SYS/broker/uptime", 0)
        client = self.come(packets.connect("a") + asks)
        self.tenths(3)
        client.packets()
        self.tenths(500)
        found = [packets.read_publish(p)[1] for p in client.packets()]
        uptimes = [int(text.split()[0]) for text in found]
        self.assertEqual(len(uptimes), 5)
        self.assertEqual([uptimes[i + 1] - uptimes[i] for i in range(4)], [10] * 4)
        b = self.broker
        self.assertTrue(0 <= (b.carried[7] * EPOCH + b.now) // 10 - uptimes[-1] <= 10)

    def test_a_lingering_connection_is_closed(self):
        self.each(self.lingers)

    def lingers(self):
        self.near(5)
        client = self.come(packets5.connect("a") + b"\xf7\0")
        self.passes(10, client)


del EpochCase
