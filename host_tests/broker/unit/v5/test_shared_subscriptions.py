"""Shared subscriptions: which member gets a message, and what passes to another member."""

from version5_case import NONE, Version5Case

from slotmq.delivery import lifecycle
from slotmq.fast import append, finish, unref
from slotmq.tables import insertion

QUEUED, SENT_1, SENT_2 = 0, 1, 2
DROPPED = 4  # of stats


class TestChoice(Version5Case):
    def group(self, members, group=b"g", name=b"t"):
        made = [self.session(b"%s%d" % (group, n)) for n in range(members)]
        return [self.subscribe(session, name, group=group) for session in made]

    def choose(self, sub, qos=1, but=NONE):
        return self.five.shares.choose(self.broker, self.five.share[sub], qos, but)

    def test_each_member_once_before_any_twice(self):
        for members in (1, 2, 3, 7):
            with self.subTest(members=members):
                subs = self.group(members, b"of %d" % members)
                found = [self.choose(subs[0]) for _ in range(5 * members)]
                for k in range(5):
                    turn = found[k * members : (k + 1) * members]
                    self.assertEqual(sorted(turn), sorted(subs))

    def test_members_that_leave_or_join_keep_the_order(self):
        subs = self.group(4)
        first = self.choose(subs[0])
        self.broker.subscriptions.remove(self.sessions, first)
        rest = [sub for sub in subs if sub != first]
        self.assertEqual(sorted([self.choose(rest[0]) for _ in range(3)]), sorted(rest))
        late = self.subscribe(self.session(b"late"), b"t", group=b"g")
        found = [self.choose(late) for _ in range(4)]
        rest.append(late)
        self.assertEqual(sorted(found), sorted(rest))

    def test_groups_of_other_names_or_filters_are_separate(self):
        one, other = self.group(2, b"one"), self.group(2, b"other")
        elsewhere = [
            self.subscribe(self.broker.subscriptions.session[sub], b"t/+", group=b"one")
            for sub in one
        ]
        self.assertEqual(self.five.shares.names.count(), 3)
        for _ in range(2):
            for subs in (one, other, elsewhere):
                self.assertEqual(
                    sorted([self.choose(subs[0]), self.choose(subs[0])]), sorted(subs)
                )

    def test_a_member_with_space_comes_before_a_connected_one_without(self):
        subs = self.group(2)
        session = self.broker.subscriptions.session[subs[1]]
        self.sessions.conn[session] = 0
        self.broker.deliveries.window[0] = self.broker.deliveries.window[1] = 2
        msg = self.store()
        for _ in range(4):
            append(self.broker.tables, session, msg, 2)
        unref(self.broker.tables, msg)
        self.assertEqual(self.choose(subs[0], 1), subs[0])
        self.assertEqual(self.choose(subs[0], 0), subs[1])  # QoS 0 needs no space in the queue

    def test_an_excluded_member_is_not_chosen(self):
        subs = self.group(2)
        session = self.broker.subscriptions.session[subs[0]]
        self.assertEqual([self.choose(subs[0], 1, session) for _ in range(3)], [subs[1]] * 3)
        alone = self.group(1, b"alone")
        session = self.broker.subscriptions.session[alone[0]]
        self.assertEqual(self.choose(alone[0], 1, session), NONE)


class TestGroups(Version5Case):
    def refs(self):
        return [refs for refs in self.five.shares.refs if refs]

    def test_a_group_ends_with_its_last_subscription(self):
        sessions = [self.session(b"s%d" % n) for n in range(3)]
        subs = [self.subscribe(session, b"a/b", group=b"g") for session in sessions]
        self.assertEqual(self.refs(), [3])
        self.subscribe(sessions[0], b"a/b", 1, b"g")  # again: it is the same one
        self.assertEqual(self.refs(), [3])
        for left, sub in ((2, subs[0]), (1, subs[2])):
            self.broker.subscriptions.remove(self.sessions, sub)
            self.assertEqual(self.refs(), [left])
        lifecycle.end_session(self.broker, sessions[1])
        self.assertEqual(self.refs(), [])
        self.assertEqual(self.five.shares.names.count(), 0)
        self.assertEqual(self.broker.subscriptions.nodes.count(), 0)

    def test_a_full_table_refuses_a_new_group_only(self):
        session = self.session(b"s")
        for n in range(4):
            self.subscribe(session, b"t", group=b"g%d" % n)
        node = insertion.find_node(self.broker.subscriptions, b"t", 0, 1)
        self.assertEqual(self.five.shares.take(node, b"one more", 0, 8), NONE)
        self.assertEqual(self.five.shares.refused, 1)
        self.assertEqual(self.five.shares.take(node, b"g1", 0, 2), self.five.share[1])

    def test_a_refused_subscription_leaves_no_group(self):
        broker = self.broker
        session = self.session(b"s")
        most = broker.subscriptions.slots
        for n in range(most):
            self.subscribe(session, b"f%d" % n)
        self.assertEqual(self.subscribe(session, b"t", group=b"g"), NONE)
        self.assertEqual(self.five.shares.names.count(), 0)
        self.assertEqual(broker.subscriptions.nodes.count(), most)


class TestPassOn(Version5Case):
    def setUp(self):
        Version5Case.setUp(self)
        self.leaver, self.other = self.session(b"leaver"), self.session(b"other")
        self.mine = self.subscribe(self.leaver, b"t", group=b"g")

    def join(self, qos=2):
        return self.subscribe(self.other, b"t", qos, b"g")

    def flags(self, session):
        entry = self.sessions.head[session]
        found = []
        while entry != NONE:
            found.append(self.broker.deliveries.flags[entry] & 31)
            entry = self.broker.deliveries.next[entry]
        return found

    def test_queued_messages_pass_to_another_member(self):
        for qos in (1, 2, 1):
            self.publish(qos=qos)
        self.assertEqual(self.waiting(self.leaver), 3)
        self.join()
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual(self.flags(self.other), [2, 4, 2])

    def test_they_pass_at_the_qos_of_that_member(self):
        self.publish(qos=2)
        self.join(qos=1)
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual(self.flags(self.other), [2])

    def test_a_qos_2_message_that_was_sent_does_not_pass(self):
        deliveries = self.broker.deliveries
        for state, wanted in ((QUEUED, 1), (SENT_1, 1), (SENT_2, 0)):
            with self.subTest(state=state):
                self.publish(qos=2 if state == SENT_2 else 1)
                entry = self.sessions.head[self.leaver]
                if state != QUEUED:
                    deliveries.state[entry] = state
                    self.sessions.queued[self.leaver] -= 1
                    self.sessions.inflight[self.leaver] += 1
                before = self.waiting(self.other)
                self.join()
                lifecycle.end_session(self.broker, self.leaver)
                self.assertEqual(self.waiting(self.other) - before, wanted)
                self.broker.subscriptions.remove(
                    self.sessions, self.sessions.first_sub[self.other]
                )
                self.leaver = self.session(b"leaver")
                self.mine = self.subscribe(self.leaver, b"t", group=b"g")

    def test_messages_of_other_subscriptions_do_not_pass(self):
        self.subscribe(self.leaver, b"alone")
        self.join()
        self.publish(b"alone")
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual(self.waiting(self.other), 0)

    def test_without_another_member_they_are_dropped(self):
        self.publish()
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def refused(self):
        return self.broker.deliveries.refused, self.broker.stats[DROPPED]

    def test_messages_beyond_its_window_are_dropped_and_counted(self):
        for _ in range(4):
            self.publish()
        self.join()
        self.broker.deliveries.window[1] = 2
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual(self.waiting(self.other), 2)
        self.assertEqual(self.refused(), (2, 2))

    def test_those_behind_one_that_has_expired(self):
        """The other's queue is full: the look for what has expired changes the leaver's, too."""
        for seconds in (None, 1, 1, None, None):
            self.publish(seconds=seconds)
        self.join()
        self.broker.deliveries.window[1] = 2
        self.subscribe(self.other, b"alone")
        for _ in range(2):
            self.publish(b"alone", seconds=1)
        self.broker.now += 20
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual(self.waiting(self.other), 2)
        self.assertEqual(self.refused(), (1, 5))

    def test_with_retain_as_published_they_keep_the_retain_flag(self):
        self.publish(retain=1)
        self.publish()
        sub = self.join()
        self.five.options[sub] = 8
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual([flags & 1 for flags in self.flags(self.other)], [1, 0])

    def test_with_drop_oldest_they_replace_the_oldest(self):
        for _ in range(3):
            self.publish()
        self.join()
        self.broker.deliveries.window[1] = 2
        self.broker.settings.when_full["deliveries"] = "drop_oldest"
        newest = self.broker.deliveries.msg[self.sessions.tail[self.leaver]]
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual(self.waiting(self.other), 2)
        self.assertEqual(self.broker.deliveries.msg[self.sessions.tail[self.other]], newest)
        self.assertEqual(self.refused(), (1, 1))

    def test_they_pass_although_the_table_is_full(self):
        settings = self.broker.settings
        settings.max_session_share = settings.max_offline_share = 100
        self.broker.apply_settings()
        deliveries = self.broker.deliveries
        for _ in range(4):
            self.publish()
        beside = self.session(b"beside")
        msg = self.store()
        while deliveries.count[0] < deliveries.slots:
            append(self.broker.tables, beside, msg, 2)
        unref(self.broker.tables, msg)
        self.join()
        lifecycle.end_session(self.broker, self.leaver)
        self.assertEqual(self.waiting(self.other), 4)
        self.assertEqual(self.refused(), (0, 0))

    def test_messages_of_a_version_3_session_do_not_pass(self):
        deliveries = self.broker.deliveries
        self.join()
        for _ in range(deliveries.slots):  # each entry has belonged to the group
            self.publish()
            entry = self.sessions.head[self.leaver]
            session = self.leaver if entry != NONE else self.other
            finish(self.broker.tables, self.sessions.head[session])
        older = self.sessions.take(b"older", 0, 5)
        self.subscribe(older, b"alone")
        self.publish(b"alone")
        self.assertEqual(self.waiting(older), 1)
        lifecycle.end_session(self.broker, older)
        self.assertEqual((self.waiting(self.leaver), self.waiting(self.other)), (0, 0))
