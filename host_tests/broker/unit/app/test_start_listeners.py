"""The addresses a program listens on: from the configuration, the command line, and both."""

import errno

from app_case import BOARD, Broker, Case

from slotmq import app


class TestListeners(Case):
    def warnings(self):
        return [line for line in self.log_text().splitlines() if "Nobody" in line]

    def test_loopback_without_a_configuration(self):
        self.assertEqual(self.started().opened, [("127.0.0.1", 1883, 0), ("::1", 1883, None)])

    def test_a_port(self):
        opened = self.started("-p", "1884").opened
        self.assertEqual(opened, [("127.0.0.1", 1884, 0), ("::1", 1884, None)])

    def test_an_address(self):
        self.assertEqual(self.started("--host", "::").opened, [("::", 1883, 0)])
        opened = self.started("--host", "0.0.0.0", "-p", "1884").opened
        self.assertEqual(opened, [("0.0.0.0", 1884, 0)])

    def test_a_configuration_without_a_listener(self):
        made = self.started("-c", self.conf("max_qos 1"))
        self.assertEqual(made.opened, [("127.0.0.1", 1883, 0), ("::1", 1883, None)])
        self.assertTrue(made.settings.allow_anonymous)

    def test_a_configuration_with_listeners(self):
        opened = self.started("-c", self.conf("listener 1884\nlistener 1885 ::1")).opened
        self.assertEqual(opened, [("0.0.0.0", 1884, 0), ("::", 1884, None), ("::1", 1885, 0)])

    def test_a_port_beside_the_configurations(self):
        path = self.conf("listener 1884 0.0.0.0")
        opened = self.started("-c", path, "-p", "1885").opened
        self.assertEqual(
            opened, [("0.0.0.0", 1884, 0), ("127.0.0.1", 1885, 0), ("::1", 1885, None)]
        )

    def test_a_port_that_the_configuration_has_adds_nothing(self):
        opened = self.started("-c", self.conf("listener 1884"), "-p", "1884").opened
        self.assertEqual(opened, [("0.0.0.0", 1884, 0), ("::", 1884, None)])

    def test_an_address_beside_the_configurations(self):
        path = self.conf("listener 1884\nlistener 1883 127.0.0.1")
        first = [("0.0.0.0", 1884, 0), ("::", 1884, None), ("127.0.0.1", 1883, 0)]
        for options, more in (
            (["--host", "::1"], [("::1", 1883, 0)]),
            (["--host", "::1", "-p", "1885"], [("::1", 1885, 0)]),
            (["--host", "127.0.0.1"], []),  # the configuration has it
            (["--host", "127.0.0.1", "-p", "1884"], []),  # and this as part of all addresses
        ):
            with self.subTest(options=options):
                self.assertEqual(self.started("-c", path, *options).opened, first + more)

    def test_an_address_of_the_network_lets_nobody_in_without_users(self):
        for host in ("0.0.0.0", "::", "192.0.2.7", "127.example.org"):
            with self.subTest(host=host):
                path = self.conf("max_qos 1")
                made = self.started("--host", host, "-c", path)
                self.assertFalse(made.settings.allow_anonymous)
                self.assertIn(f"Nobody may come in at {host}:1883", self.log_text())
                self.assertFalse(self.started("--host", host).settings.allow_anonymous)
        for host in ("127.0.0.2", "::1", "localhost"):
            with self.subTest(host=host):
                self.assertTrue(self.started("--host", host).settings.allow_anonymous)

    def test_an_explicit_line_lets_everybody_in(self):
        path = self.conf("allow_anonymous true")
        self.assertTrue(self.started("--host", "0.0.0.0", "-c", path).settings.allow_anonymous)
        self.assertEqual(self.warnings(), [])

    def test_the_log_names_each_listener_that_lets_nobody_in(self):
        text = "listener 1884\nlistener 1885 ::1\nlistener_allow_anonymous true"
        self.started("-c", self.conf(text))
        (line,) = self.warnings()
        self.assertIn("Nobody may come in at 0.0.0.0:1884", line)
        for hint in ("`slotmq passwd FILE NAME`", "`allow_anonymous true`"):
            self.assertIn(hint, line)

    def test_with_users_there_is_no_such_warning(self):
        self.started("-c", self.conf("listener 1884\npassword_file users"))
        self.assertEqual(self.warnings(), [])

    def test_an_address_in_use_is_closed_in_order(self):
        Broker.errors = {("::1", 1883): errno.EADDRINUSE}
        self.refused(1)
        self.assertEqual(Broker.made.told, ["stop"])
        self.assertTrue(Broker.made.stopped)

    def test_a_port_that_needs_rights_says_so(self):
        Broker.errors = {("0.0.0.0", 80): errno.EACCES}
        words = list(BOARD)
        words += "-c", self.conf("listener 80")
        with self.assertRaises(OSError) as caught:
            app.borrow("app.start", "start", app.App(), words)
        self.assertIn(
            ":2: listener: expected a port from 1024 on, or the right", str(caught.exception)
        )

    def test_ipv6_may_be_missing_where_nobody_asked_for_it(self):
        Broker.errors = {("::1", 1883): 97}
        self.assertEqual(self.started().opened, [("127.0.0.1", 1883, 0)])
        self.refused(1, "--host", "::1")
        self.refused(1, "-c", self.conf("listener 1883 ::1"))
