"""Message Expiry Interval of any size is reduced by the seconds that a message waited."""

import packets5
from broker_case import BrokerCase
from journal_case import JournalCase
from packets import PUBACK, ack

from slotmq import Limits

FOREVER = 0xFFFFFFFF
LARGE = (33554431, 33554432, 50000000, 50000001, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, FOREVER)
EACH = (1, 1000) + LARGE  # noqa: RUF005
LIMITS = {"tx_bytes": 128, "max_packet": 2048, "retained_name_bytes": 8192}


def told(seconds):
    """The property."""
    return b"\x02" + seconds.to_bytes(4, "big")


class Clients:
    """What both cases below do; `come` gives a client whose first bytes are these."""

    ends = ("",)  # of topics

    def topics(self, seconds):
        return [f"t/{seconds}{end}" for end in self.ends]

    def younger(self, waited, least=None):
        """What is left of all messages: topic -> property; least: of those that have expired."""
        found = {}
        for seconds in EACH:
            left = seconds - waited if least is None else max(least, seconds - waited)
            for topic in self.topics(seconds) if left > 0 else ():
                found[topic] = told(left)
        return found

    def here(self, name, said=b"", clean=True):
        client = self.come(packets5.connect(name, clean=clean, expiry=FOREVER) + said, 12)
        self.assertEqual(client.packets()[0][0], 0x20)
        return client

    def published(self):
        """All messages, retained and for a session that is not there; -> who sent them."""
        self.here("away", packets5.subscribe(1, "t/#", 1)).leave()
        sender = self.here("p")
        for seconds in EACH:
            for topic in self.topics(seconds):
                sender.send(packets5.publish(topic, b"x", 1, 1, told(seconds), retain=True))
                self.world.turn(8)
        self.assertEqual(len(sender.packets()), len(self.ends) * len(EACH))
        return sender

    def later(self, seconds):
        """Time passes, and is looked at."""
        self.broker.now += seconds * 10
        self.world.turn(3)

    def found(self, name, said=b"", clean=True):
        """What a client that comes is given: topic -> property."""
        client = self.come(packets5.connect(name, clean=clean, expiry=FOREVER) + said, 20)
        found = {}
        for _ in range(len(EACH) * 2):
            for data in client.packets():
                if data[0] >> 4 == 3:
                    flags, topic, packet_id, properties, _ = packets5.read_publish(data)
                    self.assertNotIn(topic, found)
                    found[topic] = properties
                    if flags & 6:
                        client.send(ack(PUBACK, packet_id))
            self.world.turn(6)
        client.leave()
        self.world.turn(3)
        return found


class TestQueued(BrokerCase, Clients):
    ends = ("", "x" * 200)  # larger than the outgoing buffer

    def setUp(self):
        self.start(Limits(**LIMITS))
        self.broker.now = 1000

    def test_what_is_retained_or_queued(self):
        for waited in (0, 1, 999, 1000, 33554430, 33554431, 33554432, 50000001, 70000000):
            with self.subTest(waited=waited):
                self.setUp()
                sender = self.published()
                self.later(waited)
                found = self.found("late", packets5.subscribe(1, "#", 1))
                self.assertEqual(found, self.younger(waited))
                self.assertEqual(self.found("away", clean=False), self.younger(waited))
                for seconds in EACH:
                    for topic in self.topics(seconds):
                        sender.send(packets5.publish(topic, b"", retain=True))
                self.world.turn(60)
                self.assertEqual(self.broker.messages.count[0], 0)

    def test_what_was_sent_says_so_each_time(self):
        sender = self.here("p")
        for seconds in LARGE:
            with self.subTest(seconds=seconds):
                client = self.here("s", packets5.subscribe(1, "#", 1))
                sender.send(packets5.publish("t", b"x", 1, 1, told(seconds)))
                self.world.turn(6)
                self.check_sent(client, seconds)
                client.leave()
                self.later(10000)
                client = self.come(packets5.connect("s", clean=False), 6)
                packet_id = self.check_sent(client, seconds - 10000)
                client.send(ack(PUBACK, packet_id))
                self.world.turn(3)

    def check_sent(self, client, left):
        sent = [data for data in client.packets() if data[0] >> 4 == 3]
        self.assertEqual(len(sent), 1)
        _, _, packet_id, properties, _ = packets5.read_publish(sent[0])
        self.assertEqual(properties, told(left))
        return packet_id

    def test_a_wills_time_begins_when_it_goes_out(self):
        witness = self.here("w", packets5.subscribe(1, "#", 0))
        for seconds in EACH:
            for delay in (0, 5000):
                with self.subTest(seconds=seconds, delay=delay):
                    properties = b"\x18" + delay.to_bytes(4, "big") + told(seconds)
                    will = ("t", "x", 0, properties)
                    client = self.come(packets5.connect("m", will=will, expiry=FOREVER))
                    self.later(5000)
                    client.leave()
                    self.world.turn(3)
                    self.later(delay)
                    self.world.turn(6, ms=100)
                    found = [packets5.read_publish(data) for data in witness.packets()]
                    self.assertEqual([one[3] for one in found], [told(seconds)])


class TestJournal(JournalCase, Clients):
    def test_what_waits_grows_no_younger_by_a_reboot(self):
        for waited in (999, 33554432):
            with self.subTest(waited=waited):
                self.setUp()
                self.check(waited)

    def check(self, waited):
        self.broker.now = 1000
        sender = self.published()
        for seconds in (1000, 33554432):
            will = (f"t/will/{seconds}", "x", 1, told(seconds))
            self.come(packets5.connect(f"m{seconds}", will=will, expiry=FOREVER))
        self.later(waited)
        sender.send(packets5.publish("now", b"x", retain=True))  # which is kept with its time
        self.world.turn(6)
        self.reboot()
        self.world.turn(6)
        self.later(1000)
        found = self.found("late", packets5.subscribe(1, "t/#", 1))
        self.assertEqual(found, self.younger(waited + 1000))
        # A will went out when the power was back, and one of them has expired since.
        wanted = self.younger(waited + 1000)
        wanted["t/will/33554432"] = told(33554432 - 1000)
        self.assertEqual(self.found("away", clean=False), wanted)

    def test_a_will_that_went_out_lives_from_then_on_after_a_reboot_too(self):
        will = ("t/will", "x", 1, told(100))
        client = self.come(packets5.connect("m", will=will, expiry=FOREVER))
        self.here("away", packets5.subscribe(1, "t/#", 1), clean=False).leave()
        self.later(60)
        client.leave()
        self.world.turn(6)
        self.reboot()
        self.later(60)
        self.assertEqual(self.found("away", clean=False), {"t/will": told(40)})
