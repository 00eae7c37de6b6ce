"""The addresses a program listens on: from the configuration, the command line, and both."""

import errno

from app_case import Broker, Case


class TestListeners(Case):
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

    def test_an_address_in_use_is_closed_in_order(self):
        Broker.errors = {("::1", 1883): errno.EADDRINUSE}
        self.refused(1)
        self.assertEqual(Broker.made.told, ["stop"])
        self.assertTrue(Broker.made.stopped)

    def test_ipv6_may_be_missing_where_nobody_asked_for_it(self):
        Broker.errors = {("::1", 1883): 97}
        self.assertEqual(self.started().opened, [("127.0.0.1", 1883, 0)])
        self.refused(1, "--host", "::1")
        self.refused(1, "-c", self.conf("listener 1883 ::1"))
