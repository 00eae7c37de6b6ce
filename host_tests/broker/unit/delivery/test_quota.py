"""Other clients may fill the tables, but cannot evict stored sessions or starve their messages."""

import unittest

import packets
import packets5
from fakes import World

from slotmq import Broker, Limits, Settings

ACCEPTED = b"\x20\x02\0\0"
REFUSED = b"\x20\x02\0\x03"
QUOTA = 0x97
SESSIONS, CONNECTIONS = 8, 4  # a Pico W's


class SessionsCase(unittest.TestCase):
    when_full = ()

    def setUp(self):
        limits = Limits(sessions=SESSIONS, connections=CONNECTIONS)
        settings = Settings(when_full=dict(self.when_full), sys_interval=0)
        self.world = World(Broker(limits, settings))
        self.broker = self.world.broker

    def connect(self, data):
        """A CONNECT: the client and its answer."""
        client = self.world.come(data, 2)
        answer, *self.waited = client.packets()
        return client, answer

    def leaves(self, name, waiting=0, clean=False):
        """A client subscribes and leaves, and messages are queued for it; -> its CONNACK."""
        client, answer = self.connect(packets.connect(name, clean=clean))
        if answer == ACCEPTED:
            client.send(packets.subscribe(1, name, 1))
            self.world.turn(2)
        client.leave()
        self.world.turn(3)
        for k in range(waiting):
            self.assertTrue(self.broker.publish(name, b"%d" % k, 1))
        return answer

    def is_known(self, name):
        name = name.encode()
        return self.broker.sessions.find(name, 0, len(name)) != 0xFFFF

    def comes_back(self, name, messages):
        _, answer = self.connect(packets.connect(name, clean=False))
        self.assertEqual(answer, b"\x20\x02\x01\0")
        self.assertEqual(len(self.waited), messages)


class TestDefaultPolicy(SessionsCase):
    def test_new_sessions_do_not_evict_a_session_with_messages(self):
        self.leaves("owner", 3)
        answers = [self.leaves(f"other{k}") for k in range(2 * SESSIONS)]
        self.assertEqual(answers, [ACCEPTED] * len(answers))  # each in the place of another
        self.comes_back("owner", 3)

    def test_new_sessions_with_messages_are_refused_once_their_slots_are_taken(self):
        self.leaves("owner", 3)
        answers = [self.leaves(f"other{k}", 1) for k in range(SESSIONS)]
        kept = SESSIONS - CONNECTIONS - 1
        self.assertEqual(answers, [ACCEPTED] * kept + [REFUSED] * (SESSIONS - kept))
        self.comes_back("owner", 3)
        self.assertTrue(self.broker.sessions.refused >= SESSIONS - kept)

    def test_clean_sessions_are_always_accepted(self):
        for k in range(SESSIONS):
            self.leaves(f"other{k}", 1)
        found = [self.connect(packets.connect(f"clean{k}")) for k in range(CONNECTIONS)]
        self.assertEqual([answer for _, answer in found], [ACCEPTED] * CONNECTIONS)

    def test_version_5_is_refused_with_quota_exceeded(self):
        for k in range(SESSIONS):
            self.leaves(f"other{k}", 1)
        _, answer = self.connect(packets5.connect("late", expiry=60))
        self.assertEqual(answer[3], QUOTA)
        _, answer = self.connect(packets5.connect("clean"))
        self.assertEqual(answer[3], 0)

    def test_of_empty_sessions_the_one_that_left_first_is_dropped(self):
        kept = SESSIONS - CONNECTIONS
        for k in range(kept):
            self.leaves(f"c{k}", k == 0)
            self.world.turn(2, 300)
        self.leaves("late")
        self.assertEqual([self.is_known(f"c{k}") for k in range(3)], [True, False, True])

    def test_a_session_with_qos_2_ids_is_not_empty(self):
        client, _ = self.connect(packets.connect("owner", clean=False))
        client.send(packets.publish("t", b"x", 2, 7))
        self.world.turn(2)
        client.leave()
        for k in range(SESSIONS):
            self.leaves(f"other{k}")
        self.assertTrue(self.is_known("owner"))


class TestDropOldest(SessionsCase):
    when_full = (("sessions", "drop_oldest"),)

    def test_the_session_that_left_first_is_dropped_even_with_messages(self):
        self.leaves("owner", 3)
        self.world.turn(2, 300)
        answers = [self.leaves(f"other{k}", 1) for k in range(SESSIONS)]
        self.assertEqual(answers, [ACCEPTED] * SESSIONS)
        self.assertFalse(self.is_known("owner"))


class TestFewSlots(unittest.TestCase):
    def test_at_least_as_many_sessions_as_connections_are_stored(self):
        for sessions, connections, kept in ((8, 7, 7), (8, 4, 4), (3, 3, 3), (32, 4, 28)):
            with self.subTest(sessions=sessions, connections=connections):
                case = SessionsCase()
                limits = Limits(sessions=sessions, connections=connections, subscriptions=40)
                case.world = World(Broker(limits, Settings(sys_interval=0)))
                case.broker = case.world.broker
                answers = [case.leaves(f"c{k}", 1) for k in range(sessions)]
                self.assertEqual(answers.count(ACCEPTED), kept)


def used(broker):
    """Message slots and blocks that are taken."""
    messages = broker.messages
    return messages.count[0], messages.arena.blocks - messages.arena.free_blocks()


class MessagesCase(unittest.TestCase):
    """64 message slots and 200 blocks."""

    LIMITS = {"queued": 60, "deliveries": 300, "message_bytes": 12800}  # noqa: RUF012

    def setUp(self):
        self.settings = Settings(sys_interval=0)
        self.limits = Limits(**self.LIMITS)
        self.make()

    def make(self):
        self.world = World(Broker(self.limits, self.settings))
        self.broker = self.world.broker

    def subscriber(self, name, topic, clean=False, qos=1):
        client = self.world.client(name, clean=clean)
        client.send(packets.subscribe(1, topic, qos))
        self.world.turn(2)
        client.packets()
        return client

    def departed(self, count):
        for k in range(count):
            self.subscriber(f"gone{k}", f"gone/{k}").leave()
        self.world.turn(3)

    def publish(self, client, topic, times, size=10, qos=1, first=1):
        """Publish so many messages; each is acknowledged."""
        for k in range(times):
            client.send(packets.publish(topic, b"x" * size, qos, first + k))
            self.world.turn(2)
            self.assertEqual(len(client.packets()), 1)

    def queue_of(self, name):
        """Messages and blocks that are queued for a session."""
        sessions = self.broker.sessions
        messages = self.broker.messages
        session = sessions.find(name.encode(), 0, len(name))
        entry = sessions.head[session]
        slots = blocks = 0
        while entry != 0xFFFF:
            msg = self.broker.deliveries.msg[entry]
            slots += 1
            blocks += -(-(messages.topic_len[msg] + 2 + messages.payload_len[msg]) // 64)
            entry = self.broker.deliveries.next[entry]
        return slots, blocks

    def is_served(self):
        """Does a connected client get each of 40 messages?"""
        reader = self.subscriber("reader", "r", True)
        writer = self.world.client("writer")
        for k in range(40):
            writer.send(packets.publish("r", b"%d" % k, 1, 1 + k))
            self.world.turn(3)
            reader.answer()
            self.world.turn(2)
        return len(reader.messages) == 40


class TestMessages(MessagesCase):
    def test_sessions_without_a_connection_leave_space_for_connected_ones(self):
        for size, most in ((10, (48, 48)), (300, (30, 150))):
            with self.subTest(size=size):
                self.make()
                self.departed(3)
                writer = self.world.client("w")
                for k in range(3):
                    self.publish(writer, f"gone/{k}", 45, size)
                writer.leave()
                self.assertEqual(used(self.broker), most)
                self.assertTrue(self.broker.deliveries.refused)
                self.assertTrue(self.is_served())

    def test_a_session_has_half_of_slots_and_bytes_connected_or_not(self):
        for there in (False, True):
            for size, most in ((10, (32, 32)), (300, (20, 100))):  # 5 blocks each
                with self.subTest(there=there, size=size):
                    self.make()
                    reader = self.subscriber("slow", "slow")  # which acknowledges nothing
                    if not there:
                        reader.leave()
                        self.world.turn(3)
                    self.publish(self.world.client("w"), "slow", 50, size)
                    self.assertEqual(self.queue_of("slow"), most)
                    self.assertEqual(reader.stream.closed, not there)

    def test_the_last_quarter_is_for_sessions_with_short_queues(self):
        """Also if clients with long queues were connected when they got them, and left then."""
        for size, most in ((10, (48, 48)), (300, (30, 150))):
            with self.subTest(size=size):
                self.make()
                writer = self.world.client("w")
                for k in range(3):
                    reader = self.subscriber(f"slow{k}", f"slow/{k}")
                    self.publish(writer, f"slow/{k}", 45, size)
                    reader.leave()
                    self.world.turn(3)
                writer.leave()
                slots, blocks = used(self.broker)
                part = 16 // SESSIONS
                self.assertTrue(most[0] <= slots <= most[0] + part, slots)
                self.assertTrue(blocks <= most[1] + part * 5, blocks)
                self.assertTrue(self.is_served())

    def test_a_quota_is_a_part_of_what_retained_messages_leave(self):
        self.departed(2)
        writer = self.world.client("w")
        for k in range(32):
            writer.send(packets.packet(0x31, packets.text(f"home/{k}") + b"x" * 100))
            self.world.turn(2)
        for k, most in ((0, 16), (1, 8)):
            self.publish(writer, f"gone/{k}", 40)
            self.assertEqual(self.queue_of(f"gone{k}")[0], most)
        self.assertTrue(self.is_served())
        for k in range(32):
            writer.send(packets.packet(0x31, packets.text(f"home/{k}")))
            self.world.turn(2)
        self.publish(writer, "gone/0", 40)
        self.assertEqual(self.queue_of("gone0")[0], 32)
        self.assertEqual(self.broker.retained.blocks, 0)

    def test_a_single_message_larger_than_the_quota_is_accepted(self):
        self.limits = Limits(message_bytes=2048, reassembly=1)
        self.make()
        reader = self.subscriber("here", "r")
        writer = self.world.client("w")
        writer.send(packets.publish("r", b"x" * 1800, 1, 1))
        self.world.turn(9)
        reader.answer()
        self.world.turn(2)
        self.assertEqual([len(row[1]) for row in reader.messages], [1800])

    def test_a_message_for_many_counts_once(self):
        for k in range(3):
            self.subscriber(f"gone{k}", "all").leave()
        self.world.turn(3)
        self.publish(self.world.client("w"), "all", 30)
        self.assertEqual(used(self.broker)[0], 30)
        self.assertEqual([self.queue_of(f"gone{k}")[0] for k in range(3)], [30] * 3)

    def test_the_quotas_are_settings(self):
        self.settings.max_session_share = 25
        self.settings.max_offline_share = 50
        self.make()
        self.departed(3)
        writer = self.world.client("w")
        for k in range(3):
            self.publish(writer, f"gone/{k}", 45)
        self.assertEqual([self.queue_of(f"gone{k}")[0] for k in range(3)], [16, 16, 0])
        self.settings.max_session_share = self.settings.max_offline_share = 100
        self.broker.apply_settings()
        self.publish(writer, "gone/2", 45)
        self.assertEqual(used(self.broker)[0], 64)

    def test_with_drop_oldest_the_newest_are_queued(self):
        self.settings.when_full["deliveries"] = "drop_oldest"
        self.make()
        self.departed(2)
        writer = self.world.client("w")
        for k in range(2):
            for n in range(60):
                writer.send(packets.publish(f"gone/{k}", b"%02d" % n, 1, 1 + n))
                self.world.turn(1)
        self.assertEqual([self.queue_of(f"gone{k}")[0] for k in range(2)], [32, 16])

    def test_drop_oldest_drops_nothing_that_frees_no_bytes(self):
        """If the message is in other queues too, dropping it frees no bytes."""
        self.settings.when_full["deliveries"] = "drop_oldest"
        self.limits = Limits()
        self.make()
        for k in range(3):
            self.subscriber(f"gone{k}", "all").leave()
        self.world.turn(3)
        writer = self.world.client("writer")
        for k in range(26):  # retained
            writer.send(packets.packet(0x31, packets.text(f"home/{k}") + b"x"))
            self.world.turn(2)
        self.publish(writer, "all", 60)
        self.assertEqual([self.queue_of(f"gone{k}")[0] for k in range(3)], [19] * 3)

    def test_a_group_member_whose_quota_is_used_up_is_not_chosen(self):
        members = []
        for name in ("idle", "quick"):
            first = packets5.connect(name) + packets5.subscribe(1, "$share/g/t", 1)
            member = self.world.come(first, 4)
            member.packets()
            members.append(member)
        writer = self.world.client("writer")
        for k in range(40):
            self.publish(writer, "t", 1, 900, first=1 + k)
            for data in members[1].packets():
                members[1].send(packets.ack(packets.PUBACK, packets5.read_publish(data)[2]))
            self.world.turn(2)
        self.assertEqual(self.broker.deliveries.refused, 0)
        self.assertGreater(len(members[0].packets()), 2)

    def test_messages_that_wait_for_pubrel_count(self):
        self.settings.qos2_delivery = "release"
        self.limits = Limits(received=64)
        self.make()
        writer = self.world.client("w")
        self.publish(writer, "t", 50, qos=2)
        self.assertEqual(used(self.broker)[0], 32)

    def test_the_quota_holds_for_version_5(self):
        first = packets5.connect("gone5", expiry=60) + packets5.subscribe(1, "t", 1)
        self.world.come(first).leave()
        self.world.turn(3)
        self.publish(self.world.client("w"), "t", 50)
        self.assertEqual(self.queue_of("gone5")[0], 32)


class TestDeliveries(MessagesCase):
    """A Pico W's 80 deliveries. A message takes one for each receiver."""

    LIMITS = {}  # noqa: RUF012

    def entries(self):
        return self.broker.deliveries.count[0]

    def all_alike(self, count, leave):
        readers = [self.subscriber(f"s{k}", "all") for k in range(count)]
        if leave:
            for reader in readers:
                reader.leave()
            self.world.turn(3)
        return readers

    def test_sessions_without_a_connection_leave_some_for_connected_ones(self):
        for of_version_5 in (False, True):
            with self.subTest(of_version_5=of_version_5):
                self.make()
                self.all_alike(3, True)
                if of_version_5:
                    last = packets5.connect("s3", expiry=60) + packets5.subscribe(1, "all", 1)
                else:
                    last = packets.connect("s3", clean=False) + packets.subscribe(1, "all", 1)
                self.world.come(last).leave()
                self.world.turn(3)
                writer = self.world.client("w")
                self.publish(writer, "all", 60)
                writer.leave()
                self.assertEqual([self.queue_of(f"s{k}")[0] for k in range(4)], [15] * 4)
                self.assertEqual(self.entries(), 60)
                self.assertEqual(self.broker.deliveries.refused, 4 * 45)
                self.assertTrue(self.is_served())
                self.assertEqual(self.broker.deliveries.refused, 4 * 45)

    def test_connected_clients_that_acknowledge_nothing_leave_some_for_others(self):
        self.limits = Limits(connections=6)
        self.make()
        self.all_alike(4, False)
        writer = self.world.client("w")
        self.publish(writer, "all", 60)
        self.assertEqual([self.queue_of(f"s{k}")[0] for k in range(4)], [15] * 4)
        for k in range(2):  # clients that leave get no more
            self.subscriber(f"t{k}", "few").leave()
        self.world.turn(3)
        self.publish(writer, "few", 2)
        self.assertEqual(self.entries(), 60)
        here = self.subscriber("here", "few", True)  # with a short queue: an even part
        self.publish(writer, "few", 5)
        self.assertEqual(self.queue_of("here")[0], 80 // 4 // SESSIONS)
        here.answer()
        self.world.turn(2)
        self.assertEqual(len(here.messages), 2)

    def test_a_session_has_half_of_them_connected_or_not(self):
        self.limits = Limits(queued=60, messages=200)
        for there in (False, True):
            with self.subTest(there=there):
                self.make()
                reader = self.subscriber("slow", "slow")
                if not there:
                    reader.leave()
                    self.world.turn(3)
                self.publish(self.world.client("w"), "slow", 50)
                self.assertEqual(self.queue_of("slow")[0], 40)

    def test_a_session_without_deliveries_gets_one(self):
        self.limits = Limits(deliveries=16)  # the last quarter has no even part for each
        self.make()
        self.all_alike(4, True)
        writer = self.world.client("w")
        self.publish(writer, "all", 20)
        self.assertEqual(self.entries(), 12)
        here = self.subscriber("here", "few", True)
        self.publish(writer, "few", 2)
        self.assertEqual(self.queue_of("here")[0], 1)
        here.answer()
        self.world.turn(2)
        self.assertEqual(len(here.messages), 1)

    def test_deliveries_that_wait_for_pubcomp_count(self):
        self.limits = Limits(inflight=30)
        self.make()
        self.all_alike(4, True)
        writer = self.world.client("w")
        self.publish(writer, "all", 14)
        reader = self.subscriber("rel", "rel", True, 2)
        self.publish(writer, "rel", 8, qos=2)
        for data in reader.packets():
            where = 2 + 2 + len("rel")
            reader.send(packets.ack(packets.PUBREC, data[where] << 8 | data[where + 1]))
        self.world.turn(4)
        reader.packets()
        self.assertEqual(self.entries(), 14 * 4 + 4)
        self.assertEqual(self.broker.messages.count[0], 14)
        self.publish(writer, "rel", 2, qos=2, first=20)
        self.assertEqual(self.entries(), 60)

    def test_with_drop_oldest_the_newest_are_queued(self):
        self.settings.when_full["deliveries"] = "drop_oldest"
        self.make()
        self.all_alike(4, True)
        writer = self.world.client("w")
        self.publish(writer, "all", 20)
        self.publish(writer, "all", 4, size=300)  # larger than those that they replace
        self.assertEqual([self.queue_of(f"s{k}") for k in range(4)], [(15, 11 + 4 * 5)] * 4)

    def test_the_quotas_are_settings(self):
        self.limits = Limits(messages=200)
        for session, offline, most in ((10, 50, 8), (50, 30, 6), (100, 100, 20)):
            self.settings.max_session_share = session
            self.settings.max_offline_share = offline
            with self.subTest(session=session, offline=offline):
                self.make()
                self.all_alike(4, True)
                self.publish(self.world.client("w"), "all", 30)
                self.assertEqual([self.queue_of(f"s{k}")[0] for k in range(4)], [most] * 4)
                self.settings.max_session_share = self.settings.max_offline_share = 100
                self.broker.apply_settings()
                self.publish(self.world.client("w2"), "all", 20)
                self.assertEqual(self.entries(), 80)


class TestSys(MessagesCase):
    """$SYS is readable when all message slots are taken."""

    TOPIC = "$SYS/broker/slots/messages/refused"

    def setUp(self):
        self.settings = Settings(sys_interval=1, max_session_share=100, max_offline_share=100)
        self.limits = Limits(queued=70, deliveries=300)
        self.make()

    def values(self, client):
        found = [data for data in client.packets() if data[0] >> 4 == 3]
        return [data[-1:] for data in found if self.TOPIC.encode() in data], found

    def test_sys_values_need_no_message_slot(self):
        for words in (packets, packets5):
            with self.subTest(words=words):
                self.make()
                client = self.world.come(words.connect("watch"))
                self.departed(1)
                writer = self.world.client("w")
                self.publish(writer, "gone/0", 69)
                self.assertEqual(self.broker.messages.count[0], 64)
                client.send(words.subscribe(1, self.TOPIC, 0))
                self.world.turn(3)
                values, found = self.values(client)
                self.assertEqual(values, [b"5"])
                self.assertEqual(found[0][0], 0x31)
                self.assertEqual(found[0][1], len(found[0]) - 2)
                self.publish(writer, "gone/0", 2)
                self.world.turn(20, 100)
                values, _ = self.values(client)
                self.assertEqual(values[-1:], [b"7"])
