"""The rules of an acl_file, asked one by one; the file: its syntax, its errors, cuts."""

import unittest

import scratch
from acl_vectors import FILES, OURS, cases

from slotmq import Broker, Limits, Settings
from slotmq.access import acl_file
from slotmq.access.owners import Owners
from slotmq.config.settings import ConfError

READ, WRITE = 1, 2


class Client:
    """Stands for the fields of a CONNECT, and for its stream."""

    user = None

    trusted = False

    def __init__(self, name):
        self.user_name = name.encode() if name is not None else None

    def read(self, where):
        return where


def broker_with(rules, **limits):
    values = {"sessions": 32, "users": 16, "acl_rules": 64, "acl_bytes": 2048}
    values.update(limits)
    values["route_entries"] = 48
    path = scratch.write(rules)
    return Broker(Limits(**values), Settings(sys_interval=0, acl_file=path))


def session_of(broker, client_id, user):
    name = client_id.encode()
    session = broker.sessions.find(name, 0, len(name))
    if session == 0xFFFF:
        session = broker.sessions.take(name, 0, len(name))
    owner = broker.owners.take(broker, 0, Client(user))
    broker.owners.set(session, owner, name)
    return session


def rights(broker, client_id, user, topic):
    session = session_of(broker, client_id, user)
    name = topic.encode()
    acl = broker.acl
    may_read = acl.reads(session, name, 0, len(name))
    may_write = acl.may_write(session, name, 0, len(name))
    return ("r" if may_read else "") + ("w" if may_write else "")


class TestVectors(unittest.TestCase):
    def test_each_says_what_is_listed(self):
        for rules, lines in FILES + OURS:
            broker = broker_with(rules)
            for client_id, user, topic, expected in cases(lines):
                with self.subTest(client_id=client_id, user=user, topic=topic):
                    self.assertEqual(rights(broker, client_id, user, topic), expected)

    def test_a_session_without_a_recorded_user_reads_but_does_not_write(self):
        """Its messages are looked through when its client has come."""
        broker = broker_with("user alice\ntopic readwrite a\n")
        session = broker.sessions.take(b"old", 0, 3)
        self.assertTrue(broker.acl.reads(session, b"a", 0, 1))
        self.assertFalse(broker.acl.may_write(session, b"a", 0, 1))


class TestSyntax(unittest.TestCase):
    def test_blanks_comments_bom_and_the_line_ends_of_windows(self):
        rules = b"\xef\xbb\xbf# rules\r\n\r\n  topic  read\ta b  \r\n"
        rules += b"user  al ice \r\n\ttopic deny c\r\n"
        broker = broker_with(rules)
        self.assertEqual(broker.acl.count, 2)
        self.assertEqual(rights(broker, "c", None, "a b"), "r")
        session = session_of(broker, "c", "al ice")
        self.assertEqual(broker.owners.name(session), b"al ice")
        self.assertEqual(broker.owners.refs[broker.owners.user[session]], 2)  # the rule, and it

    def test_an_empty_file_denies_everything(self):
        for rules in ("", "\n", "# nothing", "user alice\n"):
            self.assertEqual(rights(broker_with(rules), "c", None, "a"), "")

    def test_each_bad_line_is_reported_with_its_number(self):
        bad = """\
topic red a
topic read
user
topic a/#/b
pattern
allow a
topic read a\0b
topic write +a
user %s
topic
""" % ("u" * 65)
        with self.assertRaises(ConfError) as caught:
            broker_with(bad)
        lines = str(caught.exception).split("\n")
        self.assertEqual([line.split(":")[1] for line in lines], [str(n + 1) for n in range(10)])
        self.assertIn("readwrite", lines[0])
        self.assertTrue(lines[3].endswith("expected a topic filter"), lines[3])
        self.assertIn("topic, user or pattern", lines[5])

    def test_only_a_filter_that_is_too_long_is_told_how_long_one_may_be(self):
        with self.assertRaises(ConfError) as caught:
            broker_with("topic read " + "a" * 9 + "\n", topic_bytes=32)
            broker_with("topic read " + "a" * 33 + "\n", topic_bytes=32)
        self.assertIn("a topic filter of at most 32 bytes", str(caught.exception))

    def test_bytes_that_are_not_utf_8(self):
        for line in (b"topic read \xff\n", b"user \xff\n"):
            self.assertRaises(ConfError, broker_with, line)

    def test_a_file_that_is_not_there(self):
        settings = Settings(sys_interval=0, acl_file=scratch.path())
        self.assertRaises(ConfError, Broker, Limits(), settings)

    def test_limits_that_are_too_low_are_named_with_what_it_takes(self):
        rules = "user a\ntopic read aaaa\nuser b\ntopic read bbbb\n"
        for name, least in (("acl_rules", 2), ("acl_bytes", 8), ("users", 2)):
            self.assertEqual(broker_with(rules, **{name: least}).acl.count, 2)
            with self.assertRaises(ConfError) as caught:
                broker_with(rules, **{name: least - 1})
            self.assertIn(f"limit {name} {least}", str(caught.exception))

    def test_a_thousand_rules(self):
        lines = [
            f"user u{n}\n" + "".join([f"topic read t/{n}/{k}\n" for k in range(10)])
            for n in range(100)
        ]
        broker = broker_with("".join(lines), users=128, acl_rules=1000, acl_bytes=16384)
        self.assertEqual(broker.acl.count, 1000)
        self.assertEqual(rights(broker, "c", "u99", "t/99/9"), "r")
        self.assertEqual(rights(broker, "c", "u98", "t/99/9"), "")


class TestCuts(unittest.TestCase):
    """A file that is cut after any byte is refused, or grants no more than the whole one, as long
    as the denials of a section stand first in it."""

    rules = """\
pattern deny dev/+/x
pattern readwrite dev/%c/#
topic deny a/b/c
topic read a/b
topic write a/b/c/#
user alice
topic deny a
topic readwrite #
user alicebob
topic subscribe a
topic read
"""[:-11]

    def rights(self, broker):
        found = []
        for user in (None, "alice", "alic", "al", "alicebob"):
            for topic in (
                "a",
                "a/b",
                "a/b/c",
                "a/b/c/d",
                "dev/c/x",
                "dev/c/y",
                "dev",
                "read",
                "d",
            ):
                found.append(rights(broker, "c", user, topic))
        return found

    def test_every_byte(self):
        data = self.rules.encode()
        whole = self.rights(broker_with(data))
        refused = 0
        for n in range(len(data)):
            try:
                broker = broker_with(data[:n])
            except ConfError as error:
                refused += 1
                self.assertIn("line end", str(error))
                continue
            for found, most in zip(self.rights(broker), whole):  # noqa: B905 - MicroPython
                self.assertTrue(found in most or most == "rw" or not found, (n, found, most))
        self.assertEqual(refused, len(data) - data.count(b"\n"))


class TestReload(unittest.TestCase):
    def test_a_bad_file_leaves_the_old_rules(self):
        broker = broker_with("user alice\ntopic read a\n")
        logged = []
        broker.log = lambda bit, text: logged.append((bit, text))
        broker.log_mask = 15
        for bad in ("user alice\ntopic read b\ntopic red c\n", "topic read a", "\xff"):
            with open(broker.settings.acl_file, "w") as file:  # noqa: PTH123
                file.write(bad)
            broker.reload()
            self.assertEqual(rights(broker, "c", "alice", "a"), "r")
            self.assertEqual(rights(broker, "c", "alice", "b"), "")
            self.assertEqual(logged[-1][0], 1)
            self.assertIn("old rules", logged[-1][1])

    def test_if_memory_ends_the_old_rules_stay_whole(self):
        """Wherever it ends: while the file is read, or while a name or a rule finds its place."""
        old = "user a\ntopic read x\nuser b\ntopic read x\ntopic deny y\npattern read %u\n"
        new = "topic read z\nuser c\ntopic x\nuser d\ntopic deny z\ntopic z\npattern %c\n"
        places = (acl_file._Rules, "rule"), (acl_file._Table, "__init__"), (Owners, "add")
        for bad in places:
            broker = broker_with(old, users=2)
            broker.log = lambda bit, text: self.logged.append((bit, text))
            broker.log_mask = 15
            for call in range(1, 99):
                with open(broker.settings.acl_file, "w") as file:  # noqa: PTH123
                    file.write(new)
                before = self.state(broker)
                self.logged = []
                if not self.fails(broker, bad, call):
                    break
                self.assertEqual(self.state(broker), before)
                self.assertEqual([bit for bit, _ in self.logged], [1])
                self.assertIn("The old rules stay: memory", self.logged[0][1])
            self.assertTrue(call > 1, bad)
            self.assertEqual(rights(broker, "c", "d", "z"), "")
            self.assertEqual(rights(broker, "c", "c", "x"), "rw")

    def fails(self, broker, bad, call):
        """Reload; the n-th call of a function has no memory. -> was it called as often?"""
        kind, name = bad
        inner = getattr(kind, name)
        left = [call]

        def counted(*args):
            left[0] -= 1
            if not left[0]:
                raise MemoryError("memory allocation failed")
            return inner(*args)

        setattr(kind, name, counted)
        try:
            broker.reload()
        finally:
            setattr(kind, name, inner)
        return left[0] <= 0

    def state(self, broker):
        acl = broker.acl
        n = acl.count
        owners = list(broker.owners.names), list(broker.owners.refs)
        rules = bytes(acl.access[:n]), list(acl.end[:n]), bytes(acl.text[: acl.end[n - 1]])
        return n, list(acl.first), rules, owners

    def test_names_that_no_rule_and_no_session_has_make_space(self):
        broker = broker_with("user a\ntopic x\nuser b\ntopic x\n", users=2)
        with open(broker.settings.acl_file, "w") as file:  # noqa: PTH123
            file.write("user c\ntopic x\nuser d\ntopic y\n")
        broker.reload()
        self.assertEqual(rights(broker, "c", "d", "y"), "rw")
        self.assertEqual(rights(broker, "c", "c", "x"), "rw")
        self.assertEqual(sum(broker.owners.refs), 3)
