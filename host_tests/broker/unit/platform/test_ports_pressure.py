"""Clients that do not read, on the rp2 port's sockets, delay no other (platform/lwip.py)."""

import unittest

import packets
import packets5
from broker_on_board import BrokerOnBoard
from packets import PINGREQ, connect, publish, subscribe
from rp2_socket import EAGAIN, ENOBUFS, Board, Socket

from slotmq import Limits
from slotmq.platform import heap, ondemand
from slotmq.platform.lwip import Lwip

EACH_MS = 50
STALLED_MS = 3000
TOTAL = 7000  # bytes of lwIP's memory
PAYLOADS = (64, 500, 900)


class Blind:
    """A control block in which nothing is found."""

    def __getitem__(self, _address):
        return 7


class Journal:
    """One that cannot write."""

    whole = False
    limit = 0

    def __init__(self, always):
        self.always = always

    def commit(self):
        return self.whole or not self.always


class PressureCase(unittest.TestCase):
    def setUp(self):
        self.board = Board()
        self.world = BrokerOnBoard(self.board, Limits(connections=4))
        self.world.listen("0.0.0.0", 1883)
        self.loop = self.world.broker.loop
        self.memory(self.board.mem16)

    def tearDown(self):
        self.world.end()

    def memory(self, mem16):
        self.loop.lwip = Lwip(self.loop, TOTAL, Socket, mem16, self.board.mem32)

    def clients(self, qos):
        """A subscriber that stops reading, one that reads, and a sender."""
        slow, quick = self.world.client("slow", clean=False), self.world.client("quick")
        slow.send(subscribe(1, "flood", 0))
        quick.send(subscribe(1, "flood", qos))
        sender = self.world.client("sender")
        for client in (quick, sender):
            client.peer.rtt_ms = 5
        slow.answer()
        quick.answer()
        slow.peer.stop(3000)
        return slow, quick, sender

    def flood(self, slow, quick, sender, size, qos, ms=12000):
        """Numbered messages; -> when each was sent and received, when the slow client last took
        something, and when it was ended."""
        sent, received, progress, gone = {}, {}, 0, None
        begin = self.board.clock.ms
        number = 0
        while self.board.clock.ms < begin + ms:
            now = self.board.clock.ms
            if now >= begin + number * EACH_MS:
                number += 1
                sent[number] = now
                sender.send(publish("flood", b"%08d" % number * (size // 8 + 1), qos, number))
            before = len(slow.peer.received)
            self.world.turn(1, 5)
            if self.loop.lwip.at:
                self.assertTrue(self.board.memory_used <= TOTAL)
            if len(slow.peer.received) != before:
                progress = self.board.clock.ms
            if gone is None and self.world.broker.conns.stalled:
                gone = self.board.clock.ms
            sender.answer()
            quick.answer()
            while len(received) < len(quick.messages):
                payload = quick.messages[len(received)][1]
                received[int(payload[:8])] = self.board.clock.ms
                self.assertEqual(payload, payload[:8] * (size // 8 + 1))
        return sent, received, progress, gone


class TestPressure(PressureCase):
    def test_a_client_that_does_not_read_is_ended_and_no_other_waits(self):
        for size in PAYLOADS:
            for qos in (0, 1):
                self.setUp()
                slow, quick, sender = self.clients(qos)
                sent, received, progress, gone = self.flood(slow, quick, sender, size, qos)
                self.assertEqual(self.board.waits, [])
                self.assertEqual(sorted(received), list(range(1, len(received) + 1)))
                self.assertTrue(len(sent) - len(received) <= 1)
                self.assertTrue(max(received[n] - sent[n] for n in received) < 1000)
                self.assertTrue(0 < gone - progress < STALLED_MS)
                self.assertEqual(self.world.broker.conns.stalled, 1)
                self.assertEqual(self.world.broker.connected, 2)
                again = self.world.knock()
                again.send(connect("slow", clean=False))
                self.world.run(500)
                self.assertEqual(again.packets(), [b"\x20\x02\x01\0"])
                self.world.end()

    def test_a_new_client_finds_its_quota_free(self):
        """However much the others use; also space to refuse the one after it."""
        many = [self.world.client(f"c{n}") for n in range(3)]
        lwip = self.loop.lwip
        streams = self.world.broker.conns.stream
        for client in many:
            client.peer.stop()
        for _ in range(20):
            for n in range(3):
                lwip.write(streams[n], bytes(800), 0, 800)
        used = sum([lwip.used(streams[n]) for n in range(3)])
        self.assertTrue(used > 3 * lwip.quota)
        self.assertTrue(used + lwip.quota + 300 <= TOTAL, used)

    def test_several_that_do_not_read_are_ended(self):
        """What they used is counted until lwIP frees it."""
        many = [self.world.client(f"c{n}") for n in range(3)]
        for n, client in enumerate(many):
            client.send(subscribe(1, "flood", 0))
            self.world.turn(2)
            client.peer.stop(500 + 3000 * n)
        sender = self.world.client("sender")
        for n in range(400):
            sender.send(publish("flood", bytes(900), 0, n))
            self.world.turn(1, EACH_MS)
            self.assertTrue(self.board.memory_used <= TOTAL)
            if n % 50 == 25:  # another takes the slot, and does not read either
                other = self.world.knock()
                if other:
                    other.send(connect(f"more{n}") + subscribe(1, "flood", 0))
                    self.world.turn(2)
                    other.peer.stop(100)
        self.assertEqual(self.board.waits, [])
        self.assertTrue(self.world.broker.conns.stalled >= 5)

    def test_a_slow_reader_stays(self):
        slow, _, sender = self.clients(0)
        for n in range(600):
            sender.send(publish("flood", bytes(900), 0, n))
            self.world.turn(1, EACH_MS)
            slow.peer.takes += 5  # of each message
            self.world.board.carry()
        self.assertEqual(self.world.broker.conns.stalled, 0)
        self.assertEqual(self.board.waits, [])

    def test_a_reader_with_a_long_round_trip_stays(self):
        """Each TCP acknowledgement is followed by as many bytes, so it always uses the same."""
        for rtt_ms, size in ((195, 200), (200, 200), (390, 200), (595, 600), (800, 600)):
            self.setUp()
            reader, sender = self.world.client("reader"), self.world.client("sender")
            reader.send(subscribe(1, "flood", 0))
            reader.peer.rtt_ms = rtt_ms
            for n in range(400):
                sender.send(publish("flood", bytes(size), 0, n))
                self.world.turn(5, 5)
            self.assertEqual(self.world.broker.conns.stalled, 0)
            self.world.end()

    def test_a_client_that_waits_for_the_journal_stays(self):
        client = self.world.client("client")
        self.world.broker.journal = Journal(always=True)
        client.send(PINGREQ)
        self.world.run(6000)
        self.assertEqual(self.world.broker.conns.stalled, 0)
        self.assertEqual(client.packets(), [])
        self.world.broker.journal.whole = True
        self.world.run(1000)
        self.assertEqual(client.packets(), [b"\xd0\0"])

    def test_a_journal_without_waiting_clients_delays_no_other(self):
        self.world.broker.journal = Journal(always=False)
        reader, sender = self.world.client("reader"), self.world.client("sender")
        reader.send(subscribe(1, "flood", 0))
        reader.peer.rtt_ms = 30
        for n in range(200):
            sender.send(publish("flood", bytes(600), 0, n))
            self.world.turn(5, 5)
        reader.answer()
        self.assertTrue(len(reader.messages) > 100)
        self.assertEqual(self.world.broker.conns.stalled, 0)

    def test_a_lingering_connection_ends_although_it_is_stuck(self):
        """A client of version 5 connects again while its old connection is stuck."""
        for ms in range(200, 3000, 300):
            self.setUp()
            old = self.world.knock()
            old.send(packets5.connect("same") + packets5.subscribe(1, "flood", 0))
            sender = self.world.client("sender")
            old.peer.stop(100)
            for n in range(20):
                sender.send(publish("flood", bytes(500), 0, n))
                self.world.turn(2, 5)
            self.world.run(ms)
            again = self.world.knock()
            again.send(packets5.connect("same"))
            self.world.run(5000)
            self.assertTrue(again.packets())
            self.assertTrue(self.world.broker.conns.stalled <= 1)
            self.assertEqual(self.world.broker.conns.count, 2)
            self.world.end()

    def test_a_large_packet_without_a_slot_for_its_rest_is_dropped_whole(self):
        """Its receiver stays, since its stream is not cut within a packet."""
        settings = self.world.broker.settings
        settings.max_session_share = settings.max_offline_share = 100
        self.world.broker.apply_settings()
        away = self.world.client("away", clean=False)
        away.send(subscribe(1, "q", 1))
        self.world.turn(3)
        away.peer.end()
        self.world.run(300)
        sender = self.world.client("sender")
        for n in range(24):  # until no message slot is free
            sender.send(publish("q", bytes(600), 1, n + 1))
            self.world.turn(3, 10)
            sender.answer()
        for words in (packets, packets5):
            quick = self.world.knock()
            quick.send(words.connect("quick") + words.subscribe(1, "big", 0))
            self.world.turn(6)
            quick.peer.rtt_ms = 5
            quick.packets()
            dropped = self.world.broker.stats[4]
            for size in (1000, 1400, 1700, 2000):
                sender.send(publish("big", bytes(size), 0))
                self.world.turn(20, 10)
            self.assertEqual([len(one) // 100 for one in quick.packets()], [10, 14])
            self.assertEqual(self.world.broker.stats[4] - dropped, 2)
            self.assertEqual(quick.peer.state, "open")
            quick.peer.end()
            self.world.run(300)

    def test_nodelay_is_always_set(self):
        """Otherwise a pbuf of few bytes takes a segment's memory."""
        self.world.broker.settings.set_tcp_nodelay = False
        self.world.client("client")
        self.assertTrue(self.world.broker.conns.stream[0].pcb.nodelay)

    def test_memory_of_a_closed_connection_is_counted(self):
        slow, quick, sender = self.clients(0)
        self.flood(slow, quick, sender, 900, 0, 4500)
        lwip = self.loop.lwip
        self.assertTrue(lwip.gone > lwip.quota)
        self.assertTrue(self.board.memory_used >= lwip.gone)
        self.world.run(12000)
        self.assertEqual(self.board.memory_used, 0)
        self.assertTrue(self.world.broker.now >= lwip.gone_until)

    def test_after_a_write_of_unknown_length_the_stream_is_closed(self):
        """If the control block cannot be read, a write may wait 10 s, and then fails."""
        self.memory(Blind())
        slow, quick, sender = self.clients(0)
        self.flood(slow, quick, sender, 900, 0, 40000)
        self.assertEqual((self.loop.lwip.at, self.loop.lwip.tries), (0, 0))
        self.assertTrue(self.board.waits)
        self.assertTrue(self.world.broker.connected < 3)
        for payload in [message[1] for message in quick.messages]:
            self.assertEqual(payload, payload[:8] * (len(payload) // 8))

    def test_after_a_failed_first_write_the_next_connection_shows_the_layout(self):
        """The first client is gone, or a MemoryError prevents the look at its control block."""
        world = self.world
        first = world.knock()
        first.send(connect("first"))
        world.board.pass_time(1)
        first.peer.reset()
        world.turn(3)
        self.assertEqual(self.loop.lwip.at, 0)
        take = self.take = ondemand.take
        ondemand.take = self.no_heap
        second = world.knock()
        second.send(connect("second"))
        try:
            world.turn(3)
        finally:
            ondemand.take = take
        world.turn(5, 10)
        self.assertEqual(second.packets(), [b"\x20\x02\0\0"])
        self.assertTrue(self.loop.lwip.at)
        self.assertEqual(heap._state[1], 0)  # nothing is left lifted

    def no_heap(self, name, now):
        if name == "platform.lwip_layout":
            raise MemoryError
        return self.take(name, now)

    def test_writes_without_memory_are_tried_again(self):
        """ENOBUFS and EAGAIN, as proposed for later versions: nothing was sent."""
        for no_memory in (ENOBUFS, EAGAIN):
            self.setUp()
            self.memory(Blind())
            self.board.no_memory = no_memory
            slow, quick, sender = self.clients(1)
            slow.peer.takes = 30000  # it goes on in the end
            received = self.flood(slow, quick, sender, 500, 1)[1]
            self.assertEqual(self.board.waits, [])
            self.assertTrue(len(received) > 10)
            self.assertEqual(len(received), len(quick.messages))  # none came twice
            self.world.end()
