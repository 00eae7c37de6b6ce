"""Sessions keep their users through a power cut, a compaction and an orderly stop."""

import scratch
from journal_case import CONNACK, RESUMED, JournalCase
from packets import PUBACK, ack, publish, subscribe

RULES = "user root\ntopic readwrite #\nuser alice\ntopic read a/#\n"
BAD_ID = b"\x20\x02\0\2"


class OwnedCase(JournalCase):
    rules = RULES

    def setUp(self):
        self.path = scratch.write(self.rules)
        self.settings = (("acl_file", self.path),)
        JournalCase.setUp(self)

    def owner(self, name):
        session = self.broker.sessions.find(name, 0, len(name))
        return self.broker.owners.name(session)

    def leave_queued(self):
        alice = self.client("phone", username="alice", clean=False)
        self.ask(alice, subscribe(1, "a/#", 1), b"\x90\x03\0\1\1")
        self.leave(alice)
        root = self.client("root", username="root")
        self.ask(root, publish("a/1", b"x", 1, 1), ack(PUBACK, 1))
        return root


class TestRestart(OwnedCase):
    def test_a_session_belongs_to_the_same_user_after_each_way_to_a_start(self):
        self.leave_queued()
        for way in (self.reboot, self.stop, self.compact):
            way()
            self.assertEqual(self.owner(b"phone"), b"alice")
        self.client("phone", RESUMED, username="alice", clean=False)

    def compact(self):
        self.broker.compact()
        self.reboot()

    def test_another_user_does_not_get_it(self):
        self.leave_queued()
        self.reboot()
        bob = self.client("phone", CONNACK, username="bob", clean=False)
        self.world.turn(3)
        self.assertEqual(bob.packets(), [])
        self.reboot()
        self.assertEqual(self.owner(b"phone"), b"bob")

    def test_nor_does_a_client_without_a_user_name(self):
        self.leave_queued()
        self.reboot()
        self.client("phone", CONNACK, clean=False)
        self.reboot()
        self.assertEqual(self.owner(b"phone"), None)
        self.client("phone", CONNACK, username="alice", clean=False)

    def test_rights_that_were_removed_while_the_power_was_off(self):
        self.leave_queued()
        with open(self.path, "w") as file:  # noqa: PTH123
            file.write("user root\ntopic readwrite #\n")
        self.reboot()
        alice = self.client("phone", RESUMED, username="alice", clean=False)
        self.world.turn(3)
        self.assertEqual(alice.packets(), [])
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_a_will_that_became_forbidden_while_the_power_was_off(self):
        self.client("w", username="root", will=("a/w", b"gone", 1))
        alice = self.client("phone", username="alice", clean=False)
        self.ask(alice, subscribe(1, "a/#", 1), b"\x90\x03\0\1\1")
        with open(self.path, "w") as file:  # noqa: PTH123
            file.write("user alice\ntopic read a/#\n")
        self.reboot()
        self.assertEqual(self.broker.deliveries.count[0], 0)
        self.assertEqual(self.broker.messages.count[0], 0)

    def test_more_users_than_the_table_has(self):
        for name in ("a", "b"):
            self.leave(self.client(name, username=name * 30, clean=False))
        self.limits = (("users", 2),)
        self.cut_power()
        with self.assertRaises(OSError) as caught:
            self.start()
        self.assertIn("users", str(caught.exception))
        self.limits = ()
        self.start()
        self.assertEqual(self.owner(b"b"), b"b" * 30)


class TestWithoutUsers(JournalCase):
    """A journal of a broker that did not ask for users."""

    def test_a_session_belongs_to_the_first_who_comes(self):
        self.leave(self.client("phone", username="alice", clean=False))
        self.settings = (("acl_file", scratch.write("pattern readwrite #\n")),)
        self.reboot()
        bob = self.client("phone", RESUMED, username="bob", clean=False)
        self.leave(bob)
        self.client("phone", CONNACK, username="alice", clean=False)
