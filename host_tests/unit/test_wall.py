"""The firmware's clock: an NTP server that answers, one that does not, and $SLOTMQ/time."""

import unittest

import board_case  # noqa: F401 - the folder of the firmware

from slotmq_run import wall

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
    """In place of the module, and of what it makes."""

    AF_INET = SOCK_DGRAM = 1

    def __init__(self):
        self.asked = 0
        self.answer = None
        self.open = 0
        self.known = True

    def getaddrinfo(self, name, port):
        if not self.known:
            raise OSError(-2)
        return [(1, 1, 0, "", (name, port))]

    def socket(self, *_):
        self.open += 1
        return self

    def setblocking(self, on):
        assert not on

    def sendto(self, data, address):
        assert len(data) == 48 and address == ("time.example", 123)
        self.asked += 1

    def recv(self, _n):
        if self.answer is None:
            raise OSError(11)
        return self.answer

    def close(self):
        self.open -= 1


class Settings:
    def __init__(self, remote_admin):
        self.remote_admin = remote_admin


class Broker:
    """What a clock needs of one."""

    def __init__(self, remote_admin=True):
        self.settings = Settings(remote_admin)
        self.callbacks = []
        self.published = []

    def subscribe(self, topic, callback):
        assert topic == "$SLOTMQ/time"
        self.callbacks.append(callback)

    def publish(self, topic, payload):
        self.published.append((topic, payload))

    def tell(self, payload):
        for callback in self.callbacks:
            callback("$SLOTMQ/time", payload, 0, 0)


class TestWall(unittest.TestCase):
    def setUp(self):
        self.kept = wall.socket, wall.machine
        wall.socket, wall.machine = Socket(), Machine()
        self.net, self.rtc = wall.socket, wall.machine.rtc

    def tearDown(self):
        wall.socket, wall.machine = self.kept

    def answer(self, seconds, fraction=bytes(4)):
        self.net.answer = bytes(40) + seconds.to_bytes(4, "big") + fraction

    def clock(self):
        clock = wall.Clock("time.example")
        clock.follow(Broker())
        return clock

    def test_an_answer_sets_the_clock_and_the_next_question_is_a_days(self):
        clock = self.clock()
        clock.step(1)
        self.answer(NOW + 2208988800)
        clock.step(200)
        self.assertTrue(clock.is_set)
        self.assertEqual(self.rtc.when[:3], (2026, 9, 21))
        self.assertEqual(self.rtc.when[4:7], (14, 13, 20))
        clock.step(3600 * 1000)
        self.assertEqual((self.net.asked, self.net.open), (1, 0))
        clock.step(90_000_000)
        self.assertEqual(self.net.asked, 2)

    def test_no_answer_is_asked_for_again_after_a_minute(self):
        clock = wall.Clock("time.example")
        for now in range(0, 150_000, 200):
            clock.step(now)
        self.assertEqual((self.net.asked, self.net.open), (3, 1))
        self.assertFalse(clock.is_set)

    def test_a_name_that_nobody_knows_is_tried_again(self):
        self.net.known = False
        clock = self.clock()
        clock.step(1)
        self.net.known = True
        clock.step(70_000)
        self.assertEqual(self.net.asked, 1)

    def test_a_server_that_does_not_know_the_time_is_not_believed(self):
        clock = self.clock()
        clock.step(1)
        self.answer(2208988800)  # 1970
        clock.step(200)
        self.assertFalse(clock.is_set)
        self.assertEqual(self.rtc.when, None)

    def test_after_2036_the_count_has_begun_anew(self):
        clock = self.clock()
        clock.step(1)
        self.answer(100)
        clock.step(200)
        self.assertEqual(self.rtc.when[:3], (2036, 2, 7))

    def test_a_client_tells_it(self):
        broker = Broker()
        clock = wall.Clock("$SLOTMQ/time")
        clock.follow(broker)
        for wrong in (b"", b"noon", b"5", b"-1"):
            broker.tell(wrong)
            self.assertFalse(clock.is_set)
        broker.tell(b"%d" % NOW)
        self.assertEqual(self.rtc.when[:3], (2026, 9, 21))
        clock.step(10**6)
        self.assertEqual(self.net.asked, 0)

    def test_a_harvester_tells_it_with_a_fraction_and_an_error(self):
        broker = Broker()
        clock = wall.Clock("$SLOTMQ/time")
        clock.follow(broker)
        broker.tell(b"%d.250 40 harvester" % NOW)
        self.assertEqual(self.rtc.when[4:7], (14, 13, 20))

    def test_nobody_tells_it_without_remote_admin(self):
        broker = Broker(remote_admin=False)
        clock = wall.Clock("$SLOTMQ/time")
        clock.follow(broker)
        self.assertEqual(broker.callbacks, [])

    def test_a_broker_that_records_is_told_the_servers_time(self):
        broker = Broker()
        broker.settings.record = [b"#"]
        clock = wall.Clock("time.example")
        clock.follow(broker)
        clock.step(1)
        self.answer(NOW + 2208988800, b"\x40\0\0\0")
        clock.step(201)
        told = [("$SLOTMQ/time", b"%d.250 200 ntp" % NOW)]
        self.assertEqual(broker.published, told)

    def test_a_broker_that_records_nothing_is_told_nothing(self):
        broker = Broker()
        clock = wall.Clock("time.example")
        clock.follow(broker)
        clock.step(1)
        self.answer(NOW + 2208988800)
        clock.step(200)
        self.assertTrue(clock.is_set)
        self.assertEqual(broker.published, [])


if __name__ == "__main__":
    unittest.main()
