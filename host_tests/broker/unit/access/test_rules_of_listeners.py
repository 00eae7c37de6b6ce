"""per_listener_settings: each listener has the rules of its own acl_file, or none. On CPython."""

import unittest

import scratch
from access_case import LIMITS, AccessCase
from fakes import Listener, World

from slotmq import Broker, Limits, Settings
from slotmq.config.settings import ConfError
from slotmq.platform.runtime import MICROPYTHON

ONE = "topic read a\nuser alice\ntopic readwrite a\ntopic readwrite only/one\n"
TWO = "topic read b\nuser alice\ntopic readwrite b\npattern readwrite dev/%c\n"


class Case(AccessCase):
    """Listeners 0 and 1 have rules, listener 2 has none."""

    def setUp(self):
        self.files = [scratch.write(ONE), scratch.write(TWO), None]
        options = [{"acl_file": path} for path in self.files]
        listeners = [(None, 1884 + k, 0, own) for k, own in enumerate(options)]
        settings = Settings(sys_interval=0, acl_file=self.files[0])
        settings.listeners = listeners
        self.broker = Broker(Limits(**LIMITS), settings)
        self.world = World(self.broker)
        self.listeners = [Listener() for _ in options]
        for k, listener in enumerate(self.listeners):
            self.world.loop.listeners.add(listener, listener.accept, 0, options[k])
        self.broker.log = lambda bit, text: None

    def come_to(self, number, name, user=None, **more):
        self.world.listener = self.listeners[number]
        return self.come(name, user, **more)


class TestLists(Case):
    def test_each_listener_has_its_own_rules(self):
        for level in (4, 5):
            readers = [self.come_to(k, f"r{k}", "alice", level=level) for k in range(3)]
            for reader in readers:
                for name in ("a", "b", "only/one"):
                    reader.subscribe(name)
            writer = self.come_to(2, "w")
            for name in (b"a", b"b", b"only/one", b"other"):
                writer.publish(name)
            found = [reader.got() for reader in readers]
            self.assertEqual(found[0], [b"a", b"only/one"])
            self.assertEqual(found[1], [b"b"])
            self.assertEqual(found[2], [b"a", b"b", b"only/one"])
            for peer in readers + [writer]:  # noqa: RUF005
                peer.leave()

    def test_who_may_publish(self):
        reader = self.come_to(2, "r")
        reader.subscribe("#")
        for k, expected in enumerate(([b"a"], [b"b", b"dev/w1"], [b"a", b"b", b"dev/w2"])):
            writer = self.come_to(k, f"w{k}", "alice", level=5)
            codes = [writer.publish(name) for name in (b"a", b"b", b"dev/w%d" % k)]
            self.assertEqual(reader.got(), expected)
            self.assertEqual(codes.count(0x87), 3 - len(expected))

    def test_subscribe(self):
        self.assertEqual(self.come_to(0, "c0").subscribe("b"), 0x80)
        self.assertEqual(self.come_to(1, "c1").subscribe("b"), 0)
        self.assertEqual(self.come_to(2, "c2").subscribe("c"), 0)

    def test_a_session_gets_the_rules_of_the_listener_that_its_client_comes_to(self):
        peer = self.come_to(0, "c", "alice", clean=False)
        peer.subscribe("a", 1)
        peer.cut()
        writer = self.come_to(2, "w")
        writer.publish(b"a", b"queued")
        peer = self.come_to(1, "c", "alice", clean=False)
        self.assertEqual((peer.present, peer.got()), (1, []))
        writer.publish(b"a", b"denied here")
        self.assertEqual(peer.got(), [])

    def test_a_session_from_a_journal_has_no_list_until_its_client_comes(self):
        session = self.broker.sessions.take(b"old", 0, 3)
        self.broker.owners.set(session, self.broker.owners.add(b"alice"), b"old")
        acl = self.broker.acl
        self.assertTrue(acl.reads(session, b"other", 0, 5))
        self.assertFalse(acl.may_write(session, b"only/one", 0, 8))  # its will: only one allows it
        self.broker.sessions.free(session)
        self.broker.owners.free(session)

    def test_a_reload_reads_each_file(self):
        peer = self.come_to(1, "c", "alice")
        peer.subscribe("b")
        writer = self.come_to(2, "w")
        with open(self.files[1], "w") as file:  # noqa: PTH123
            file.write("user alice\ntopic readwrite c\n")
        self.broker.reload()
        writer.publish(b"b")
        self.assertEqual((peer.got(), self.broker.acl.count), ([], 4))
        with open(self.files[1], "w") as file:  # noqa: PTH123
            file.write("tropic c\n")
        self.broker.reload()
        self.assertEqual(self.broker.acl.count, 4)

    def test_errors_of_all_files_and_limits_of_their_sum(self):
        bad = [scratch.write("tropic a\n"), scratch.write("topic read b\nuser\n")]
        settings = self.broker.settings
        settings.listeners = [(None, 1, 0, {"acl_file": path}) for path in bad]
        settings.acl_file = bad[0]
        with self.assertRaises(ConfError) as caught:
            Broker(Limits(**LIMITS), settings)
        found = str(caught.exception).split("\n")
        self.assertEqual([line.split(": ")[0] for line in found], [bad[0] + ":1", bad[1] + ":2"])
        settings.listeners = [(None, 1, 0, {"acl_file": path}) for path in self.files]
        settings.acl_file = self.files[0]
        with self.assertRaises(ConfError) as caught:
            Broker(Limits(**dict(LIMITS, acl_rules=5)), settings)
        self.assertIn("limit acl_rules 6, not 5", str(caught.exception))


if MICROPYTHON:

    class TestLists(unittest.TestCase):  # type: ignore[no-redef]
        def test_a_board_has_the_same_rules_at_each_listener(self):
            """config/rare_kinds.py refuses a second file there."""
            path = scratch.write(ONE)
            broker = Broker(Limits(**LIMITS), Settings(sys_interval=0, acl_file=path))
            self.assertEqual((broker.acl.files, broker.acl.count), ([path], 3))


if __name__ == "__main__":
    unittest.main()
