"""Expiry of messages and sessions, without a network."""

from version5_case import NONE, Version5Case, started

from slotmq import Settings
from slotmq.delivery import lifecycle, retain
from slotmq.fast import unref

NEVER = 0x3FFFFFFF
EXPIRED = 26  # index in Broker.stats


class TestMessages(Version5Case):
    def test_remaining_seconds_are_rounded_up(self):
        self.broker.now = 1000
        msg = self.store(seconds=2)
        found = []
        for _ in range(22):
            found.append(self.five.remaining(self.broker, msg))
            self.broker.now += 1
        self.assertEqual(found, [2] * 10 + [1] * 10 + [0] * 2)
        self.broker.now += 100000
        self.assertEqual(self.five.remaining(self.broker, msg), 0)
        unref(self.broker.tables, msg)

    def test_a_message_without_expiry_does_not_expire(self):
        msg = self.store()
        self.broker.now += 100000000
        self.assertEqual(self.five.remaining(self.broker, msg), -1)
        unref(self.broker.tables, msg)

    def test_expired_queued_and_retained_messages_are_removed(self):
        session = self.session(b"s")
        self.subscribe(session, b"#", 1)
        for n in range(5):
            self.publish(b"t%d" % n, seconds=1, retain=1)
        self.publish(b"stays", retain=1)
        self.publish(b"stays, too", seconds=100, retain=1)
        self.assertEqual((self.waiting(session), self.broker.retained.names.count()), (7, 7))
        self.wait(8)
        self.assertEqual((self.waiting(session), self.broker.retained.names.count()), (7, 7))
        self.wait(20)
        self.assertEqual((self.waiting(session), self.broker.retained.names.count()), (2, 2))
        self.assertEqual(self.broker.messages.count[0], 2)

    def test_a_message_published_long_after_it_was_stored_is_removed(self):
        msg = self.store(b"held", retain=1, seconds=10)
        self.wait(90)
        lifecycle.publish_stored(self.broker, msg, NONE)
        unref(self.broker.tables, msg)
        self.wait(30)
        self.assertEqual(self.broker.messages.count[0], 0)

    def test_continuous_publishing_does_not_delay_the_removal(self):
        for n in range(self.broker.retained.slots):
            self.publish(b"r%d" % n, seconds=1 if n == 0 else 1000, retain=1)
        for _ in range(40):
            self.publish(b"all the time", seconds=60)
            self.wait(2)
        self.assertEqual(self.broker.retained.names.count(), self.broker.retained.slots - 1)

    def test_an_empty_retained_message_with_properties_clears(self):
        self.publish(b"t", retain=1)
        msg = self.store(b"t", retain=1, seconds=9)
        self.five.props[msg] = 1  # its one byte is said to be properties
        lifecycle.publish_stored(self.broker, msg, NONE)
        unref(self.broker.tables, msg)
        self.assertEqual(self.broker.retained.names.count(), 0)
        plain = self.store(b"t", retain=1)
        self.five.props[plain] = 1  # of an earlier message
        lifecycle.publish_stored(self.broker, plain, NONE)
        self.assertEqual(self.broker.retained.names.count(), 1)
        retain.set_message(self.broker, b"t", 0, 1, NONE)
        unref(self.broker.tables, plain)


class TestSessions(Version5Case):
    def there(self):
        return [slot for slot in range(self.sessions.slots) if self.sessions.used(slot)]

    def test_each_ends_after_its_expiry(self):
        one, ten = self.session(b"one", 1), self.session(b"ten", 10)
        never = self.session(b"never", 0xFFFFFFFF)
        self.wait(8)
        self.assertEqual(self.there(), [one, ten, never])
        self.wait(4)
        self.assertEqual(self.there(), [ten, never])
        self.wait(90)
        self.assertEqual(self.there(), [never])
        self.assertEqual(self.broker.stats[EXPIRED], 2)
        self.broker.now += 700000000
        self.wait(4)
        self.assertEqual(self.there(), [never])

    def test_long_expiries_are_never(self):
        session = self.session(b"s", 5)
        for seconds, wanted in ((49999999, 49999999), (50000000, NEVER), (NEVER, NEVER)):
            self.five.set_expiry(self.broker, session, seconds)
            self.assertEqual(self.five.expiry[session], wanted)

    def test_a_version_3_session_has_the_longest_allowed_expiry(self):
        session = self.session(b"s", 5)
        self.five.opened_3(self.broker, session, 0)
        self.assertEqual((self.five.expiry[session], self.sessions.clean[session]), (NEVER, 0))
        self.five.opened_3(self.broker, session, 2)
        self.assertEqual((self.five.expiry[session], self.sessions.clean[session]), (0, 1))
        broker = started(Settings(sys_interval=0, persistent_client_expiration=90))
        broker.five.opened_3(broker, 0, 0)
        self.assertEqual((broker.five.expiry[0], broker.sessions.clean[0]), (90, 0))
