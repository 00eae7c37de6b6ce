"""Long packets in pieces: which connection gets a reassembly buffer, and for how long."""

import packets5
from broker_case import BrokerCase
from fakes import IN, OUT
from packets import PINGREQ, PINGRESP, connect, packet, publish, subscribe

from slotmq import Limits

PUBACK = b"\x40\2\0\1"
BOARD = {"connections": 8}  # two buffers of 2,048 bytes
COMPUTER = {
    "connections": 14,
    "sessions": 32,
    "max_packet": 60000,
    "message_bytes": 1000000,
    "rx_bytes": 2048,
    "tx_bytes": 4096,
    "reassembly": 3,
}


class ReassemblyCase(BrokerCase):
    def start(self, limits=BOARD):
        super().start(Limits(**limits))
        self.conns = self.broker.conns
        self.buffers = len(self.conns.reassembly_owner)
        self.clients = []
        self.feeding = []  # (client, bytes to send, how many at once, every n tenths of a second)
        self.count = 0

    def end(self):
        for client in self.clients:
            client.leave()
            client.stream.read = client.stream.write_some = lambda n: n
        self.world.turn(20)

    def client(self, name, **options):
        self.clients.append(self.world.client(name, **options))
        return self.clients[-1]

    def come(self, first, turns=2):
        self.clients.append(self.world.come(first, turns))
        return self.clients[-1]

    def sender(self, name, size, first, more=0, every=1):
        """A client that begins a PUBLISH, and then sends more every few tenths of a second."""
        client = self.client(name)
        data = publish("t/long", b"x" * size, 1, 1)
        client.send(data[:first])
        if more:
            self.feeding.append((client, bytearray(data[first:]), more, every))
        return client

    def tenths(self, times=1):
        for _ in range(times):
            self.count += 1
            for client, rest, more, every in self.feeding:
                if self.count % every == 0 and not client.stream.closed:
                    client.send(rest[:more])
                    rest[:more] = b""
            self.world.turn(10, ms=10)

    def publishes(self, name, size, first=None):
        """Another client, which sends its PUBLISH at once."""
        client = self.client(name)
        client.send(publish("t/other", b"y" * size, 1, 1)[:first])
        return client

    def answered_after(self, client, most):
        for n in range(most):
            self.tenths()
            if client.packets() == [PUBACK]:
                return n + 1
        return self.fail("no PUBACK")

    def gone(self, clients):
        return [client.stream.closed for client in clients]


class TestSlowSenders(ReassemblyCase):
    def test_a_waiting_client_gets_a_buffer_within_2_seconds(self):
        """Each begins a long PUBLISH, then sends a byte every 2.5 s."""
        for limits, size, waits in ((BOARD, 2000, 300), (COMPUTER, 50000, 50000)):
            for before in (1, 30):  # tenths of a second since the slow senders began
                with self.subTest(size=size, before=before):
                    self.start(limits)
                    slow = [
                        self.sender(f"slow{i}", size, size // 4, 1, 25)
                        for i in range(self.buffers)
                    ]
                    self.tenths(before)
                    other = self.publishes("other", waits)
                    took = self.answered_after(other, 60)
                    self.assertLessEqual(took, 23 if before == 1 else 5)  # with its transfer
                    self.assertEqual(self.gone(slow), [True] * self.buffers)

    def test_more_slow_senders_than_buffers(self):
        """They wait for one another too; one that waited gets half a second more."""
        self.start(COMPUTER)
        slow = [self.sender(f"slow{i}", 50000, 1500, 1, 25) for i in range(9)]
        self.tenths()
        other = self.publishes("other", 50000)
        self.assertLessEqual(self.answered_after(other, 100), 40)
        self.assertEqual(self.gone(slow)[:6], [True] * 6)

    def test_the_client_that_waited_longest_is_next(self):
        """Although connections with lower slots wait too."""
        early = self.client("early")  # has the first slot
        slow = [self.sender(f"slow{i}", 2000, 500) for i in range(self.buffers)]
        other = self.publishes("other", 300)
        self.tenths(3)
        for client in slow[1:]:
            client.stream.ended = True
            self.buffers -= 1
        early.send(publish("t/long", b"x" * 2000, 1, 1)[:500])
        self.assertLessEqual(self.answered_after(other, 5), 2)

    def test_slow_senders_that_reconnect(self):
        slow = [self.sender(f"slow{i}", 2000, 500) for i in range(self.buffers)]
        self.tenths(3)
        for n in range(5):
            other = self.publishes("other", 300)
            for k in range(200):
                if other.packets() == [PUBACK]:
                    break
                for i, client in enumerate(slow):
                    if client.stream.closed:
                        slow[i] = self.sender(f"slow{n}.{k}.{i}", 2000, 500)
                self.tenths()
            self.assertLessEqual(k, 22)
            other.leave()
            self.tenths(2)

    def test_slow_connects_lose_their_buffers(self):
        """A CONNECT may be long."""
        slow = []
        for i in range(self.buffers):
            slow.append(self.come(connect(f"slow{i}", will=("w", b"x" * 1500, 0))[:800]))
        self.tenths()
        other = self.publishes("other", 300)
        self.assertLessEqual(self.answered_after(other, 60), 22)
        self.assertEqual(self.gone(slow), [True] * self.buffers)

    def test_a_second_long_packet_that_begins_in_the_same_read(self):
        """Its sender has had a buffer, and has none for the moment."""
        senders = [self.sender(f"s{i}", 500, 300) for i in range(self.buffers)]
        waits = self.publishes("waits", 600)
        self.tenths()
        for client in senders:
            client.send(publish("t/long", b"x" * 500, 1, 1)[300:])
            client.send(publish("t/next", b"z" * 500, 1, 1)[:100])
        self.tenths()
        for client in senders:
            client.send(publish("t/next", b"z" * 500, 1, 1)[100:])
        self.tenths()
        senders.append(waits)
        for client in senders:
            self.assertIn(client.packets(), ([PUBACK], [PUBACK] * 2))


class TestFastSenders(ReassemblyCase):
    def rate(self, more, every=1, seconds=30, waits=True):
        """Do senders of so many bytes, every few tenths of a second, stay connected?"""
        self.start(COMPUTER)
        senders = [self.sender(f"s{i}", 59000, 100, more, every) for i in range(self.buffers)]
        self.tenths()
        other = self.publishes("other", 9000) if waits else None
        self.tenths(seconds * 10)
        gone = self.gone(senders)
        if waits:
            self.assertEqual(other.packets(), [PUBACK] if any(gone) else [])
            self.assertFalse(other.stream.closed)
        self.end()
        self.assertIn(gone, ([True] * self.buffers, [False] * self.buffers))
        return not gone[0]

    def test_a_thousand_bytes_a_second_are_enough(self):
        for more, every in ((100, 1), (110, 1), (1000, 10), (1100, 10), (2000, 20)):
            self.assertTrue(self.rate(more, every), (more, every))

    def test_slower_senders_end_while_another_waits(self):
        for more, every in ((90, 1), (900, 10), (1800, 20), (10, 1), (1, 9)):
            self.assertFalse(self.rate(more, every, 5), (more, every))

    def test_slower_senders_stay_while_no_other_waits(self):
        for more, every in ((90, 1), (30, 1), (2000, 90)):
            self.assertTrue(self.rate(more, every, waits=False), (more, every))

    def test_a_waiting_client_is_served_when_they_have_finished(self):
        self.start(COMPUTER)
        senders = [self.sender(f"s{i}", 9000, 100, 120) for i in range(self.buffers)]
        self.tenths()
        other = self.publishes("other", 9000)
        self.answered_after(other, 90)
        self.tenths(5)
        self.assertEqual([client.packets() for client in senders], [[PUBACK]] * self.buffers)

    def test_a_fast_sender_stays_although_it_waited_for_its_buffer(self):
        self.start(COMPUTER)
        senders = [self.sender(f"s{i}", 20000, 100, 110) for i in range(self.buffers + 2)]
        self.tenths(450)
        self.assertEqual([client.packets() for client in senders], [[PUBACK]] * len(senders))

    def test_time_spent_waiting_does_not_count(self):
        self.start(COMPUTER)
        for i in range(self.buffers):
            self.sender(f"s{i}", 15000, 100, 110)
        self.tenths()
        waits = self.client("waits", keep_alive=1)
        waits.send(publish("t/other", b"y" * 500, 1, 1)[:400])
        for _ in range(150):
            if self.conns.reassembly[0] == self.buffers:  # the others have not finished
                self.tenths()
        self.tenths(8)
        waits.send(publish("t/other", b"y" * 500, 1, 1)[400:])
        self.tenths()
        self.assertEqual(waits.packets(), [PUBACK])

    def test_a_sender_without_a_buffer_has_its_packet_timeout(self):
        self.start(COMPUTER)
        for i in range(self.buffers):
            self.sender(f"s{i}", 15000, 100, 110)
        self.tenths()
        self.publishes("waits", 500)
        short = self.publishes("short", 30, 20)
        self.tenths(95)
        self.assertFalse(short.stream.closed)

    def test_only_the_slow_sender_ends(self):
        self.start(COMPUTER)
        senders = [
            self.sender(f"s{i}", 59000, 100, 50 if i == 1 else 110) for i in range(self.buffers)
        ]
        self.tenths()
        other = self.publishes("other", 9000)
        self.assertLessEqual(self.answered_after(other, 60), 22)
        self.tenths(50)
        self.assertEqual(self.gone(senders), [i == 1 for i in range(self.buffers)])


class TestOneBuffer(ReassemblyCase):
    """No other waits: packet_timeout, for each 2,000 bytes."""

    def lives(self, client, most=1000):
        for n in range(most):
            if client.stream.closed:
                return n
            self.tenths()
        return self.fail("it is still connected")

    def test_a_sender_that_stops_ends_after_packet_timeout(self):
        for first in (1, 3, 60, 500, 1990):
            client = self.sender("a", 2000, first)
            self.assertIn(self.lives(client), range(100, 104), first)

    def test_a_slow_sender_ends_after_packet_timeout(self):
        self.start(COMPUTER)
        self.assertIn(self.lives(self.sender("a", 59000, 100, 15)), range(100, 104))
        client = self.sender("b", 59000, 20000, 15)  # that much came at once
        self.assertIn(self.lives(client), range(100, 104))


class TestPausedInput(ReassemblyCase):
    """The broker does not read from a client that does not take what it was sent."""

    def setUp(self):
        self.start(COMPUTER)

    def cut(self, first=5000, missing=0):
        """A client that has sent a part of its PUBLISH, and received a part of a long one."""
        client = self.client("reader")
        client.send(subscribe(1, "t/other", 0))
        self.tenths()
        client.packets()
        client.stream.write_some = lambda n: None
        data = publish("t/long", b"x" * 9000, 1, 1)
        client.send(data[:first])
        self.tenths()
        other = self.publishes("other", 20000)
        self.tenths()
        self.assertEqual(other.packets(), [PUBACK])
        client.send(data[first : len(data) - missing])
        self.tenths()
        self.assertGreater(len(client.stream.sent), 500)  # it is not read
        return client

    def test_version_5_while_it_is_not_read_has_its_time(self):
        self.start(COMPUTER)
        idle = self.come(packets5.connect("idle"))
        idle.send(packets5.subscribe(1, "t/other", 0))
        self.tenths()
        for i in range(self.buffers - 1):
            self.sender(f"fast{i}", 59000, 1100, 110)
        self.tenths(50)
        data = packets5.publish("t/long", b"x" * 1900, 1, 1)
        idle.send(data[:1500])  # takes the last buffer
        self.world.turn(1)
        self.publishes("waits", 1500)
        stream = idle.stream
        before = stream.write_some, stream.events
        stream.write_some, stream.events = (
            (lambda n: None),
            (lambda mask: IN & mask if stream.sent else 0),
        )
        self.broker.publish("t/other", b"z" * 9000, 0)  # leaves in parts: it is not read
        idle.send(data[1500:])
        self.tenths(15)
        self.assertFalse(stream.closed)
        stream.write_some, stream.events = before

    def test_its_cut_packet_may_wait(self):
        client = self.cut()
        self.tenths(300)
        client.stream.write_some = lambda n: n
        self.tenths()
        self.assertEqual(client.answer(), [PUBACK])
        self.assertEqual(len(client.messages), 1)

    def test_afterwards_it_has_its_whole_packet_timeout(self):
        client = self.cut(8100, 1)
        self.tenths(300)
        client.stream.write_some = lambda n: n
        self.tenths(98)
        self.assertFalse(client.stream.closed)
        client.send(b"x")
        self.tenths()
        self.assertEqual(client.answer(), [PUBACK])

    def others(self):
        """Fast senders have all other buffers, and a client waits."""
        for i in range(self.buffers - 1):
            self.sender(f"fast{i}", 59000, 70, 110)
        self.tenths()
        return self.publishes("waits", 300)

    def test_if_another_waits_and_it_takes_nothing_it_ends(self):
        client = self.cut()
        client.stream.events = lambda mask: IN & mask
        self.tenths(5)
        self.assertLessEqual(self.answered_after(self.others(), 60), 22)
        self.assertTrue(client.stream.closed)

    def test_if_another_waits_and_it_takes_something_it_stays(self):
        client = self.cut()
        waits = self.others()
        client.stream.write_some = lambda n: 1 if self.count % 15 == 0 else None
        self.tenths(100)
        self.assertFalse(client.stream.closed)
        client.stream.write_some = lambda n: n
        self.answered_after(waits, 2)
        self.assertEqual(client.answer(), [PUBACK])


class TestKeepAlive(ReassemblyCase):
    """Bytes of a packet that is not whole do not extend it [MQTT-3.1.2-24]."""

    def tenths_until_closed(self, first):
        self.start()
        client = self.come(first)
        self.feeding.append((client, bytearray(packet(0x30, b"\0\1t" + b"x" * 900)), 1, 3))
        for n in range(200):
            if client.stream.closed:
                return n
            self.tenths()
        return self.fail("it is still connected")

    def test_single_bytes_do_not_extend_it(self):
        five = packet(0x10, b"\0\4MQTT\5\2\0\1\0" + b"\0\1a")
        self.assertIn(self.tenths_until_closed(connect("a", keep_alive=1)), range(13, 22))
        self.end()
        self.assertIn(self.tenths_until_closed(five), range(23, 28))  # it lingers for a second

    def test_whole_packets_between_partial_ones_extend_it(self):
        client = self.client("a", keep_alive=1)
        for _ in range(20):
            client.send(PINGREQ[:1])
            self.tenths(6)
            client.send(PINGREQ[1:])
            self.tenths(6)
        self.assertEqual(client.packets(), [PINGRESP] * 20)
        for _ in range(20):
            client.send(PINGREQ + PINGREQ[:1])
            self.tenths(10)
            client.send(PINGREQ[1:])
            self.tenths(4)
        self.assertEqual(client.packets(), [PINGRESP] * 40)

    def test_whole_packets_extend_it_on_a_writable_socket(self):
        client = self.client("a", keep_alive=1)
        client.stream.extra = OUT
        for _ in range(20):
            client.send(PINGREQ)
            self.tenths(14)
        self.assertEqual(client.packets(), [PINGRESP] * 20)

    def test_bytes_of_a_long_packet_extend_it_while_much_is_missing(self):
        """As in mosquitto, more than 1,000 bytes."""
        self.start(COMPUTER)
        client = self.client("a", keep_alive=1)
        data = publish("t/long", b"x" * 9000, 1, 1)
        for at in range(0, 8000, 250):
            client.send(data[at : at + 250])
            self.tenths(5)
        self.assertFalse(client.stream.closed)
        self.tenths(17)
        self.assertTrue(client.stream.closed)
