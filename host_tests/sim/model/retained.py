# retained.py - the retained messages, and which of them a new subscription gets.
#
# A scan delivers them over several turns. Until it has ended, messages that are retained meanwhile
# may be delivered, too, or not.
from ..messages import matches
from . import tables
from .delivery import Delivery
from .rights import may_read
from .session import Scan


class Retained:
    def __init__(self, model):
        self.model = model
        self.messages = {}  # topic -> message

    def put(self, msg):
        """A message with RETAIN is published."""
        old = self.messages.get(msg.topic)
        if msg.size or (old and not self.has_expired(old)):
            self.model.note_journal_change()
        if msg.size:
            self.messages[msg.topic] = msg
        elif old:
            del self.messages[msg.topic]
        self.model.retained_changes.append((msg.topic, old, msg))
        self.update_scans(msg.topic, msg)

    def learn(self, retained_changes, refusals):
        """Find out which of this window's retained messages the broker has stored."""
        for topic, _, _ in retained_changes:
            known = [None]
            for name, old, new in retained_changes:
                if name == topic:
                    known += [msg for msg in (old, new) if msg and msg.size]
            found = tables.retained(self.model.broker, topic)
            wanted = self.messages.get(topic)
            expired = found is None and self.has_expired(wanted) and not refusals.retained
            if found == (wanted.number if wanted else None) or expired:
                continue
            numbers = [msg.number if msg else None for msg in known]
            wills = [msg for msg in known if msg and msg.is_will]  # their order is not known
            if not (refusals.messages or refusals.retained or wills) or found not in numbers:
                self.model.fail("retained for %s is %s, not %r", topic, found, wanted)
            self.set(topic, known[numbers.index(found)])

    def set(self, topic, msg):
        self.messages.pop(topic, None)
        if msg:
            self.messages[topic] = msg
        self.update_scans(topic, msg)

    def update_scans(self, topic, msg):
        """Scans that still run may deliver another message for this topic, or none."""
        for session in self.model.sessions:
            for scan in session.scans:
                if not may_read(self.model, session.user, topic):
                    continue
                if scan.open and matches(scan.subscription.filter, topic):
                    scan.expected[topic] = None
                    if msg and msg.size:
                        scan.possible.setdefault(topic, []).append(msg)

    def learn_message_of_id(self, session, packet_id):
        """A message that waits for PUBREL may have found no slot."""
        sessions = self.model.broker.sessions
        slot = tables.session(self.model.broker, session.name)
        at = sessions.find_received(slot, packet_id)
        if sessions.id_msg[at] == tables.NONE:
            session.received[packet_id] = None

    def has_expired(self, msg):
        """May this message have expired?"""
        deadline = msg.deadline if msg else None
        if deadline is None:
            return False
        return self.model.now() + max(msg.early_ms, self.model.world.early_ms) >= deadline

    def check(self):
        """Check that the broker's table has these messages and no others."""
        count = 0
        for topic in sorted(self.messages):
            msg = self.messages[topic]
            found = tables.retained(self.model.broker, topic)
            if found is None and self.has_expired(msg):
                del self.messages[topic]
                continue
            if found != msg.number:
                self.model.fail("retained for %s is %s, not %r", topic, found, msg)
            count += 1
        if tables.retained_count(self.model.broker) != count:
            there = tables.retained_count(self.model.broker)
            self.model.fail("%d retained messages, not %d", there, count)

    # New subscriptions

    def begin_scan(self, session, subscription, link):
        """A new subscription must get what is retained now."""
        for scan in session.scans:
            if scan.subscription is subscription:
                scan.expected = {}  # the scan starts again
        scan = Scan(subscription, link)
        session.scans.append(scan)
        for topic in self.messages:
            if matches(scan.subscription.filter, topic) and may_read(
                self.model, session.user, topic
            ):
                msg = self.messages[topic]
                scan.expected[topic] = msg
                scan.possible[topic] = [msg]

    def explain(self, link, packet, key, exactly):
        """If a scan explains this PUBLISH, return a delivery for it.

        exactly: its subscription identifiers must be those of the subscription."""
        session = link.session
        topic = packet.topic
        allowed = best = 0
        found = None
        for scan in session.scans:
            for msg in scan.possible.get(topic, ()):
                if msg.key() != key:
                    continue
                allowed += len(scan.possible[topic])
                score = 1 + 2 * (scan.expected.get(topic) is msg) + (scan.link is link)
                score += link.level == 5 and self.fits(scan, msg, packet, True)
                if score > best and self.fits(scan, msg, packet, exactly):
                    found = scan, msg
                    best = score
        times = session.retained_received.get((topic, key), 0)
        if not found or times >= allowed:
            return None
        session.retained_received[topic, key] = times + 1
        found[0].expected[topic] = None
        return self.add_delivery(session, found[1], packet.qos)

    def fits(self, scan, msg, packet, exactly):
        """May this packet come from that scan?"""
        history = scan.subscription.history[scan.since :]
        if exactly and sum(packet.identifiers) not in [ident for _, ident in history]:
            return False
        granted = [qos for qos, _ in history]
        if not self.model.broker.upgrade_qos:
            granted = [min(qos, msg.qos) for qos in granted]
        return packet.qos in granted

    def credit(self, session, packet, key):
        """A packet that another delivery explains may have come from a scan."""
        for scan in session.scans:
            msg = scan.expected.get(packet.topic)
            if msg and msg.key() == key:
                scan.expected[packet.topic] = None

    def add_delivery(self, session, msg, qos):
        delivery = Delivery(msg, qos, False, 1)
        delivery.in_order = False
        delivery.from_retained = True
        session.add_delivery(delivery)
        delivery.first_link = 0  # it may be sent on any connection
        return delivery

    def is_possible(self, session, key):
        """May a scan have put this message in the queue?"""
        for scan in session.scans:
            for topic in scan.possible:
                for msg in scan.possible[topic]:
                    if msg.key() == key:
                        return True
        return False

    def check_all_came(self, session):
        """Check that everything has come that scans must deliver."""
        broker = self.model.broker
        if tables.scans(broker, session.name) and not tables.has_space(broker, session.name):
            return  # the table is full: the scan waits
        for scan in session.scans:
            if scan.link is not session.link or scan.link.packet_max:
                continue
            for topic in sorted(scan.expected):
                msg = scan.expected[topic]
                if not msg or self.has_expired(msg) or self.may_have_come(session, msg):
                    continue
                self.model.fail("%s was not given %r", session.name, msg)

    def may_have_come(self, session, msg):
        """Did it come as often as there are subscriptions for it, of which some are not new?

        Then a packet may have been attributed to the wrong scan."""
        subs = [sub for sub in session.matching(msg.topic) if sub.group is None]
        again = [sub for sub in subs if len(sub.history) > 1]
        return again and session.retained_received.get((msg.topic, msg.key()), 0) >= len(subs)
