"""The addresses a program listens on: from the configuration, the command line, and both."""

import errno

from app_case import BOARD, Broker, Case

from slotmq import app

# The command line, lines of the configuration (`;` between them, "": there is none), and what is
# opened: the second of two addresses shares the quota of the first, so it has None.
OPENED = """\
 => 127.0.0.1 1883 0, ::1 1883 None
-p 1884 => 127.0.0.1 1884 0, ::1 1884 None
--host :: => :: 1883 0
--host 0.0.0.0 -p 1884 => 0.0.0.0 1884 0
 | max_qos 1 => 127.0.0.1 1883 0, ::1 1883 None
 | listener 1884 ; listener 1885 ::1 => 0.0.0.0 1884 0, :: 1884 None, ::1 1885 0
-p 1885 | listener 1884 0.0.0.0 => 0.0.0.0 1884 0, 127.0.0.1 1885 0, ::1 1885 None
-p 1884 | listener 1884 => 0.0.0.0 1884 0, :: 1884 None
--host ::1 | listener 1884 0.0.0.0 => 0.0.0.0 1884 0, ::1 1883 0
--host ::1 -p 1885 | listener 1884 0.0.0.0 => 0.0.0.0 1884 0, ::1 1885 0
--host 127.0.0.1 | listener 1883 127.0.0.1 => 127.0.0.1 1883 0
--host 127.0.0.1 -p 1884 | listener 1884 => 0.0.0.0 1884 0, :: 1884 None
"""
# The command line, lines of the configuration, may clients without a name come in, and where the
# log says that nobody may
LETS_IN = """\
 | max_qos 1 => True
--host 0.0.0.0 | max_qos 1 => False 0.0.0.0:1883
--host :: | max_qos 1 => False :::1883
--host 192.0.2.7 | max_qos 1 => False 192.0.2.7:1883
--host 127.example.org | max_qos 1 => False 127.example.org:1883
--host 127.0.0.2 | max_qos 1 => True
--host ::1 | max_qos 1 => True
--host localhost | max_qos 1 => True
--host 0.0.0.0 | allow_anonymous true => True
 | listener 1884 ; listener 1885 ::1 ; listener_allow_anonymous true => False 0.0.0.0:1884
 | listener 1884 ; password_file users => False
"""


class TestListeners(Case):
    def start_each(self, table):
        """(the fake broker, what the table says) of each line."""
        for line in table[:-1].split("\n"):
            given, _, wanted = line.partition(" => ")
            words, _, conf = given.partition("|")
            path = ["-c", self.conf(conf.replace(" ; ", "\n"))] if conf else []
            with open(self.logged, "w"):  # noqa: PTH123
                pass
            yield self.started(*words.split(), *path), wanted

    def test_what_is_opened(self):
        for made, wanted in self.start_each(OPENED):
            found = ["{} {} {}".format(*each) for each in made.opened]
            self.assertEqual(", ".join(found), wanted)

    def test_who_may_come_in(self):
        for made, wanted in self.start_each(LETS_IN):
            self.assertEqual(str(made.settings.allow_anonymous), wanted.split()[0])
            warned = [line for line in self.log_text().splitlines() if "Nobody" in line]
            self.assertEqual(len(warned), wanted.count(":1"), wanted)
            for line in warned:
                self.assertIn(f"Nobody may come in at {wanted.split()[1]},", line)
                self.assertIn("`slotmq passwd FILE NAME`", line)
                self.assertIn("`allow_anonymous true`", line)
        self.assertFalse(self.started("--host", "0.0.0.0").settings.allow_anonymous)

    def test_an_address_in_use_is_closed_in_order(self):
        Broker.errors = {("::1", 1883): errno.EADDRINUSE}
        self.refused(1)
        self.assertEqual((Broker.made.told, Broker.made.stopped), (["stop"], True))

    def test_a_port_that_needs_rights_says_so(self):
        Broker.errors = {("0.0.0.0", 80): errno.EACCES}
        words = list(BOARD)
        words += "-c", self.conf("listener 80")
        with self.assertRaises(OSError) as caught:
            app.borrow("app.start", "start", app.App(), words)
        said = str(caught.exception)
        self.assertIn(":2: listener: expected a port from 1024 on, or the right", said)

    def test_ipv6_may_be_missing_where_nobody_asked_for_it(self):
        Broker.errors = {("::1", 1883): 97}
        self.assertEqual(self.started().opened, [("127.0.0.1", 1883, 0)])
        self.refused(1, "--host", "::1")
        self.refused(1, "-c", self.conf("listener 1883 ::1"))
