# version5_case.py - a broker without a network, for the tables of MQTT 5.0. Sessions and
# subscriptions are inserted as the handlers do it.
import unittest

from packets import publish
from tables import counts

from slotmq import Broker, Limits, Settings
from slotmq.delivery import lifecycle
from slotmq.fast import new_packet, next_packet, store, unref
from slotmq.tables import insertion

NONE = 0xFFFF
EXTRA = 8
LIMITS = {"sessions": 16, "shares": 4}


def started(settings=None, **limits):
    named = dict(LIMITS)
    named.update(limits)
    return Broker(Limits(**named), settings or Settings(sys_interval=0))


class Version5Case(unittest.TestCase):
    def setUp(self):
        self.broker = started()
        self.five = self.broker.five
        self.sessions = self.broker.sessions
        self.at_first = counts(self.broker)

    def tearDown(self):
        for session in range(self.sessions.slots):
            if self.sessions.used(session):
                self.sessions.conn[session] = NONE
                lifecycle.end_session(self.broker, session)
        retained = self.broker.retained
        for slot in range(retained.slots):
            if retained.msg[slot] != NONE:
                unref(self.broker.tables, retained.remove(slot))
        self.broker.drain()
        self.assertEqual(counts(self.broker), self.at_first)

    def session(self, name, expiry=60):
        """A session without a connection that expires in so many seconds."""
        slot = self.sessions.take(name, 0, len(name))
        self.sessions.left[slot] = self.broker.now
        self.five.set_expiry(self.broker, slot, expiry)
        self.five.take(self.broker, slot)
        self.five.note_due(self.broker, slot)
        return slot

    def subscribe(self, session, name, qos=2, group=None):
        subs = self.broker.subscriptions
        node = insertion.add_node(subs, name, 0, len(name))
        if group is None:
            return insertion.add(subs, self.sessions, session, node, qos)
        slot = self.five.shares.take(node, group, 0, len(group))
        is_new = insertion.find(subs, session, node, slot) == NONE
        sub = insertion.add(subs, self.sessions, session, node, qos, slot)
        if is_new:
            self.five.shares.joined(slot, sub != NONE)
        return sub

    def store(self, topic=b"t", qos=1, seconds=None, retain=0):
        """A message with one reference, perhaps one that expires."""
        buf = publish(topic, b"x", qos, 1)
        pkt = new_packet(1000)
        next_packet(buf, 0, len(buf), pkt)
        at = 4 + len(topic)
        msg = store(self.broker.tables, buf, 4, len(topic), at, 1, qos << 1 | retain)
        if seconds is not None:
            self.broker.messages.flags[msg] |= EXTRA
            self.five.props[msg] = 0
            self.five.to_sweep = True
            self.five.expires[msg] = self.broker.now + seconds * 10
        return msg

    def publish(self, topic=b"t", qos=1, seconds=None, retain=0):
        msg = self.store(topic, qos, seconds, retain)
        lifecycle.publish_stored(self.broker, msg, NONE)
        unref(self.broker.tables, msg)

    def waiting(self, session):
        """The number of messages that are queued for the session."""
        return self.sessions.queued[session]

    def wait(self, tenths):
        """So many tenths of a second pass, with the ticks of the loop."""
        for _ in range(tenths):
            self.broker.now += 1
            if self.broker.now % 2 == 0:
                self.five.tick(self.broker)
