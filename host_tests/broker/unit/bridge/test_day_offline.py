"""A board without its uplink for a day, with a Pico W's limits: what is kept, what is dropped and
what the counters say add up to what was published."""

from bridge_case import ACCEPTED, Network, Remote
from fakes import World
from invariants import broken
from journal_case import JournalCase
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connect, publish

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore

# boards/RPI_PICO_W/limits.py, with the queue that docs/bridge.md recommends
PICO_W = {"connections": 4, "sessions": 8, "subscriptions": 48, "retained": 32}
PICO_W |= {"messages": 64, "message_bytes": 10240, "queued": 40}
EVERY_S = 600
DAY = 24 * 3600 // EVERY_S  # messages
DROPPED = 4  # index in broker.stats


class TestDayOffline(JournalCase):
    when_full = ()  # (table, policy)
    share = 75  # max_session_share, as docs/bridge.md recommends

    def start(self):
        settings = Settings(sys_interval=0)
        settings.max_session_share = self.share
        settings.max_offline_share = max(75, self.share)
        settings.when_full.update(self.when_full)
        self.broker = Broker(Limits(**PICO_W), settings)
        self.world = World(self.broker)
        restore(self.broker, self.medium, self.fail)
        self.network = Network()
        self.network.install()
        self.network.down.add(1883)
        self.bridge = self.broker.bridge(
            "up", "h", [("s/#", "out", 2)], remote_clientid="edge", notifications=False
        )
        self.sensor = None

    def publish_one(self, number, size):
        """The sensor publishes, at QoS 1 and 2 in turn; was it acknowledged?"""
        if self.sensor is None or self.sensor.stream.closed:
            self.sensor = self.come(connect("sensor", False, keep_alive=0))
            self.sensor.packets()
        qos = 1 + number % 2
        payload = b"%d " % number + b"." * size
        self.sensor.send(publish("s/t", payload, qos, number + 1))
        self.world.turn(3)
        if self.sensor.stream.closed:
            self.assertEqual(self.sensor.packets(), [])
            return False
        kind = PUBACK if qos == 1 else PUBREC
        self.assertEqual(self.sensor.packets(), [ack(kind, number + 1)])
        if qos == 2:
            self.sensor.send(ack(PUBREL, number + 1))
            self.world.turn(3)
            self.assertEqual(self.sensor.packets(), [ack(PUBCOMP, number + 1)])
        return True

    def counters(self):
        refused = self.broker.deliveries.refused, self.broker.messages.refused
        return refused + (self.broker.stats[DROPPED],)  # noqa: RUF005 - MicroPython

    def day(self, size, **when_full):
        """A day with a power cut at noon; -> numbers of the messages that came there afterwards,
        counters of the day, how many were not acknowledged."""
        self.when_full = when_full
        self.setUp()
        closed = 0
        before = 0, 0, 0
        for number in range(DAY):
            closed += not self.publish_one(number, size)
            self.world.turn(EVERY_S // 30, ms=30000)
            if number == DAY // 2:
                before = self.counters()
                self.reboot()
        self.assertEqual(self.bridge.text(), "waiting")
        now = self.counters()
        counters = [before[k] + now[k] for k in range(3)]
        kept = self.broker.sessions.queued[self.bridge.session]
        self.assertEqual(broken(self.broker), [])
        found = self.uplink_comes()
        self.assertEqual(len(found), kept)
        return found, counters, closed

    def uplink_comes(self):
        self.network.down.clear()
        while not self.network.streams:
            self.world.turn(1, ms=1000)
        remote = Remote(self.network.streams[-1])
        remote.send(ACCEPTED)
        for _ in range(200):
            remote.receive()
            self.world.turn()
        self.assertEqual(self.broker.deliveries.count[0], 0)
        found = []
        for _, payload, qos in remote.messages:
            found.append(int(payload.split()[0]))
            self.assertEqual(qos, 1 + found[-1] % 2)
        return found

    def test_the_queue_is_full(self):
        for policy, wanted in (("drop_newest", range(40)), ("drop_oldest", range(DAY - 40, DAY))):
            found, counters, closed = self.day(20, deliveries=policy)
            self.assertEqual((policy, found), (policy, list(wanted)))
            self.assertEqual((counters, closed), ([DAY - 40, 0, DAY - 40], 0))

    def test_its_share_of_the_bytes_is_full(self):
        most = 24  # of 10 blocks of 32 bytes, in 75 % of 10,240 bytes
        for policy, first in (("drop_newest", 0), ("drop_oldest", DAY - most)):
            found, counters, closed = self.day(300, deliveries=policy)
            self.assertEqual((policy, found), (policy, list(range(first, first + most))))
            self.assertEqual((counters, closed), ([DAY - most, 0, DAY - most], 0))

    def test_the_table_of_messages_is_full(self):
        self.share = 100
        most = 32
        over = DAY - most
        for policy, first, wanted, refused in (
            ("drop_newest", 0, [0, over, over], 0),
            ("drop_oldest", over, [over, 0, over], 0),
            ("disconnect", 0, [0, over, over], over),
        ):
            found, counters, closed = self.day(300, messages=policy)
            self.assertEqual((policy, found), (policy, list(range(first, first + most))))
            self.assertEqual((policy, counters, closed), (policy, wanted, refused))
