"""The firmware's clock: NTP with and without an answer, and $SLOTMQ/time."""

import sys
import unittest

import board_case  # noqa: F401 - the folder of the firmware

from slotmq.platform import dns
from slotmq_run import wall_clock

TIME, DNS = "192.168.1.9", "192.168.1.1"
NAME = "time.example"
NOW = 1_790_000_000  # seconds since 1970


class Rtc:
    def __init__(self):
        self.when = None

    def datetime(self, when):
        self.when = when


class Machine:
    def __init__(self):
        self.rtc = Rtc()

    def RTC(self):  # noqa: N802
        return self.rtc


class Socket:
    """In place of the module and its sockets: a time server and a DNS server."""

    AF_INET = SOCK_DGRAM = 1

    def __init__(self):
        self.asked = 0
        self.answers = []
        self.open = 0
        self.questions = []  # to DNS
        self.peer = None

    def getaddrinfo(self, name, port):
        assert name.replace(".", "").isdigit(), "a board would stand still now"
        return [(1, 1, 0, "", (name, port))]

    def socket(self, *_):
        self.open += 1
        return self

    def setblocking(self, on):
        assert not on

    def connect(self, peer):
        self.peer = peer

    def send(self, data):
        if self.peer[1] == 53:
            self.questions.append((self.peer[0], data))
            return
        assert len(data) == 48 and self.peer == (TIME, 123)
        self.asked += 1

    def recv(self, _n):
        if not self.answers:
            raise OSError(11)
        return self.answers.pop(0)

    def close(self):
        self.open -= 1


class Link:
    def __init__(self, dns=DNS):
        self.dns = dns

    def resolver(self):
        return self.dns


class Settings:
    def __init__(self, remote_admin, record):
        self.remote_admin = remote_admin
        self.record = record


class Broker:
    """What a clock needs of one."""

    def __init__(self, remote_admin=True, record=()):
        self.settings = Settings(remote_admin, record)
        self.callbacks = []
        self.published = []

    def subscribe(self, topic, callback):
        assert topic == "$SLOTMQ/time"
        self.callbacks.append(callback)

    def publish(self, topic, payload):
        self.published.append((topic, payload))

    def receive(self, payload):
        for callback in self.callbacks:
            callback("$SLOTMQ/time", payload, 0, 0)


class TestClock(unittest.TestCase):
    def setUp(self):
        self.kept = wall_clock.socket, wall_clock.machine, dns.socket
        wall_clock.socket, wall_clock.machine = Socket(), Machine()
        dns.socket = wall_clock.socket
        self.kept_module = sys.modules.get("socket")
        sys.modules["socket"] = wall_clock.socket  # on MicroPython dns is imported again
        self.net, self.rtc = wall_clock.socket, wall_clock.machine.rtc

    def tearDown(self):
        wall_clock.socket, wall_clock.machine, dns.socket = self.kept
        del sys.modules["socket"]
        if self.kept_module:
            sys.modules["socket"] = self.kept_module

    def answer(self, seconds, fraction=bytes(4)):
        self.net.answers.append(bytes(40) + seconds.to_bytes(4, "big") + fraction)

    def clock(self, server=TIME, dns=DNS, **broker):
        """A clock that has made its first step."""
        self.broker = Broker(**broker)
        clock = wall_clock.Clock(server, Link(dns))
        clock.follow(self.broker)
        clock.step(1)
        return clock

    def test_an_answer_sets_the_clock_for_a_day(self):
        clock = self.clock()
        self.answer(NOW + 2208988800)
        clock.step(200)
        self.assertTrue(clock.is_set)
        self.assertEqual(self.rtc.when[:3], (2026, 9, 21))
        self.assertEqual(self.rtc.when[4:7], (14, 13, 20))
        clock.step(3600 * 1000)
        self.assertEqual((self.net.asked, self.net.open), (1, 0))
        clock.step(90_000_000)
        self.assertEqual(self.net.asked, 2)

    def test_without_an_answer_it_asks_again_after_a_minute(self):
        clock = wall_clock.Clock(TIME, Link())
        for now in range(0, 150_000, 200):
            clock.step(now)
        self.assertEqual((self.net.asked, self.net.open), (3, 1))
        self.assertFalse(clock.is_set)

    def named(self, address, number=None):
        """What DNS answers to the last question."""
        asked = self.net.questions[-1][1]
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + bytes(map(int, address.split(".")))
        return (number or asked[:2]) + b"\x81\x80\0\1\0\1\0\0\0\0" + asked[12:] + record

    def test_a_name_is_resolved_by_the_networks_dns_server(self):
        clock = self.clock(NAME)
        self.assertEqual(self.net.questions[0][0], DNS)
        self.assertTrue(b"\4time\7example\0" in self.net.questions[0][1])
        self.net.answers.append(self.named(TIME))
        clock.step(200)
        self.assertEqual((self.net.asked, self.net.open), (1, 1))
        self.answer(NOW + 2208988800)
        clock.step(400)
        self.assertTrue(clock.is_set)
        self.assertEqual(self.net.open, 0)

    def test_the_duration_of_dns_does_not_count_as_an_error(self):
        clock = self.clock(NAME, record=[b"#"])
        self.net.answers.append(self.named(TIME))
        clock.step(5001)
        self.answer(NOW + 2208988800)
        clock.step(5201)
        self.assertEqual(self.broker.published, [("$SLOTMQ/time", b"%d.000 200 ntp" % NOW)])

    def test_other_answers_are_ignored(self):
        clock = self.clock(NAME)
        right = self.named(TIME)
        for wrong in (b"", b"\0", right[:11], self.named(TIME, b"no"), bytes(512)):
            self.net.answers.append(wrong)
            clock.step(200)
        self.assertEqual(self.net.asked, 0)
        self.net.answers.append(right)
        clock.step(400)
        self.assertEqual(self.net.asked, 1)

    def test_without_an_answer_dns_is_asked_three_times_a_minute(self):
        clock = self.clock(NAME)
        for now in range(200, 150_000, 200):
            clock.step(now)
        self.assertEqual((len(self.net.questions), self.net.asked, self.net.open), (9, 0, 0))
        numbers = [question[:2] for _, question in self.net.questions]
        self.assertTrue(len(set(numbers)) > 1)

    def test_an_unknown_name_is_asked_again_after_a_minute(self):
        clock = self.clock(NAME)
        self.net.answers.append(self.named(TIME)[:-4])
        clock.step(200)
        self.assertEqual((self.net.asked, self.net.open), (0, 0))
        clock.step(59_000)
        self.assertEqual(len(self.net.questions), 1)
        clock.step(60_100)
        self.assertEqual(len(self.net.questions), 2)

    def test_without_dns_or_with_an_invalid_name_no_query_is_sent(self):
        self.clock(NAME, "0.0.0.0").step(61_000)
        self.clock("time..example").step(61_000)
        self.assertEqual((self.net.questions, self.net.open), ([], 0))

    def test_a_server_with_a_time_of_1970_is_ignored(self):
        clock = self.clock()
        self.answer(2208988800)  # 1970
        clock.step(200)
        self.assertFalse(clock.is_set)
        self.assertEqual(self.rtc.when, None)

    def test_the_next_era_of_ntp_after_2036(self):
        clock = self.clock()
        self.answer(100)
        clock.step(200)
        self.assertEqual(self.rtc.when[:3], (2036, 2, 7))

    def test_a_client_sets_it(self):
        for payload, when in (
            (b"%d" % NOW, (14, 13, 20)),
            (b"%d.250 40 harvester" % NOW, (14, 13, 20)),  # with a fraction and an error
        ):
            clock = self.clock("$SLOTMQ/time")
            for wrong in (b"", b"noon", b"5", b"-1"):
                self.broker.receive(wrong)
                self.assertFalse(clock.is_set)
            self.broker.receive(payload)
            self.assertEqual(self.rtc.when[:3], (2026, 9, 21))
            self.assertEqual(self.rtc.when[4:7], when)
            clock.step(10**6)
            self.assertEqual(self.net.asked, 0)

    def test_without_remote_admin_no_client_sets_it(self):
        self.clock("$SLOTMQ/time", remote_admin=False)
        self.assertEqual(self.broker.callbacks, [])

    def test_the_time_is_published_for_a_broker_that_records(self):
        for record, published in (
            ([b"#"], [("$SLOTMQ/time", b"%d.250 200 ntp" % NOW)]),
            ((), []),
        ):
            clock = self.clock(record=record)
            self.answer(NOW + 2208988800, b"\x40\0\0\0")
            clock.step(201)
            self.assertTrue(clock.is_set)
            self.assertEqual(self.broker.published, published)
