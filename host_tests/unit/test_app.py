"""The program around a broker: arguments, listeners, orders, reload, exit status.

A stand-in takes the broker's place; host_tests/test_start.py and test_app.py start the real one.
"""

import errno
import unittest

import scratch

from slotmq import app, broker, log
from slotmq.limits import Limits
from slotmq.runtime import MICROPYTHON
from slotmq.settings import ConfError

BOARD = ["--board", "RPI_PICO_W"]  # its tables fit the heap of the tests


class Broker:
    """Records what it is told; `run` obeys the orders it was made to expect."""

    made = None  # the last one
    too_large = False  # are the tables?
    orders = b"s"
    errors = {}  # noqa: RUF012 - listen's, by (host, port)

    def __init__(self, limits, settings):
        if Broker.too_large:
            raise MemoryError
        Broker.made = self
        self.limits = limits
        self.settings = settings
        self.loop = LOOP
        LOOP.watch = self.watch
        self.told = []
        self.opened = []
        self.stopped = False
        self.watched = None

    def listen(self, host, port, most):
        if (host, port) in Broker.errors:
            raise OSError(Broker.errors[host, port], "as told")
        self.opened.append((host, port, most))

    def watch(self, stream, callback):
        self.watched = callback

    def run(self):
        for order in Broker.orders:
            if self.watched and not self.stopped:
                self.watched(Stream(bytes([order])))
        self.stopped = True

    def stop(self):
        self.told.append("stop")

    def dump_tree(self):
        self.told.append("dump_tree")

    def reload(self):
        self.told.append("reload")
        self.on_reload()

    def apply_settings(self):
        self.told.append("apply_settings")


class Loop:
    pass


LOOP = Loop()  # one for all: a start on MicroPython forgets how it is made


class Stream:
    def __init__(self, content):
        self.content = content

    def read(self, n):
        assert n == 1
        return self.content


class Case(unittest.TestCase):
    def setUp(self):
        self.kept = broker.Broker
        broker.Broker = Broker
        Broker.made = None
        Broker.too_large = False
        Broker.orders = b"s"
        Broker.errors = {}
        self.logged = scratch.path()

    def tearDown(self):
        broker.Broker = self.kept

    def conf(self, text):
        return scratch.write(f"log_dest file {self.logged}\n{text}\n")

    def log_text(self):
        with open(self.logged) as file:  # noqa: PTH123
            return file.read()

    def started(self, *argv):
        self.assertEqual(app.main(BOARD + list(argv)), 0)
        return Broker.made

    def refused(self, status, *argv):
        self.assertEqual(app.main(BOARD + list(argv)), status)
        self.assertEqual(log.mask, 0)


class TestArguments(Case):
    def test_unknown_or_incomplete(self):
        for argv in (["-x"], ["-p"], ["1883"], ["-c"]):
            with self.subTest(argv=argv):
                self.refused(3, *argv)

    def test_ports(self):
        for port in ("0", "65536", "-1", "mqtt", ""):
            with self.subTest(port=port):
                self.refused(3, "-p", port)

    def test_an_unknown_board(self):
        self.refused(3, "--board", "ABACUS")

    def test_a_missing_file(self):
        self.refused(3, "-c", scratch.path())

    def test_a_bad_line(self):
        self.refused(3, "-c", self.conf("max_qos 3"))
        self.assertIsNone(Broker.made)

    def test_the_list_of_arguments_stays_whole(self):
        argv = BOARD + ["-p", "1884"]  # noqa: RUF005
        self.assertEqual(app.main(argv), 0)
        self.assertEqual(argv[-2:], ["-p", "1884"])


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


class TestOrders(Case):
    def test_they_are_methods_of_the_broker(self):
        Broker.orders = b"tr"
        path = self.conf("")
        told = self.started("--orders", "-c", path).told
        self.assertEqual(told, ["dump_tree", "reload", "apply_settings", "stop"])

    def test_without_the_option_nobody_listens_to_them(self):
        self.assertIsNone(self.started().watched)

    def test_the_end_of_the_stream_stops(self):
        program = app.App()
        program.broker = Broker(None, None)
        program.obey(Stream(b""))
        self.assertEqual(program.broker.told, ["stop"])

    def test_what_means_nothing_does_nothing(self):
        program = app.App()
        program.broker = Broker(None, None)
        for order in (b"?", b"c", None):  # no journal to compact; no byte after all
            program.obey(Stream(order))
        self.assertEqual(program.broker.told, [])


class TestReload(Case):
    def reload(self, before, after, *argv):
        path = self.conf(before)
        program = app.App()
        app.borrow("start", "start", program, BOARD + ["-c", path] + list(argv))  # noqa: RUF005
        with open(path, "w") as file:  # noqa: PTH123
            file.write(f"log_dest file {self.logged}\n{after}\n")
        program.reload()
        self.mask = log.mask
        program.end()
        return program

    def test_a_change(self):
        program = self.reload("max_qos 1", "max_qos 0")
        self.assertEqual(program.settings.max_qos, 0)
        self.assertEqual(program.broker.told, ["apply_settings", "stop"])
        self.assertIn("changed: max_qos.", self.log_text())

    def test_what_cannot_change_is_said(self):
        self.reload("listener 1", "listener 2")
        self.assertIn("changed: nothing.", self.log_text())
        self.assertIn("new start changes: listener.", self.log_text())

    def test_a_bad_file_changes_nothing(self):
        program = self.reload("max_qos 1", "max_qos 0\nmax_qos 3")
        self.assertEqual(program.settings.max_qos, 1)
        self.assertEqual(program.broker.told, ["stop"])
        self.assertIn("3: max_qos: expected", self.log_text())

    def test_a_log_that_cannot_be_written_changes_nothing(self):
        program = self.reload("max_qos 1", "max_qos 0\nlog_dest file /none/such/log")
        self.assertEqual((program.settings.max_qos, self.mask), (1, 15))
        self.assertIn("3: log_dest: expected a file", self.log_text())

    def test_the_log_follows(self):
        made = self.reload("", "log_type error").broker
        self.assertEqual((self.mask, made.log_mask), (1, 1))
        made = self.reload("", "log_type error", "-v").broker
        self.assertEqual((self.mask, made.log_mask), (127, 127))

    def test_without_a_configuration_there_is_nothing_to_reload(self):
        program = app.App()
        program.broker = Broker(None, None)
        program.reload()
        self.assertEqual(program.broker.told, [])


class TestPidFile(Case):
    def test_it_is_there_while_the_broker_runs(self):
        path = scratch.path()
        read = []

        def ready(broker):
            with open(path) as file:  # noqa: PTH123
                read.append(file.read())

        argv = ["-c", self.conf("pid_file " + path), "--pid", "4711"]
        self.assertEqual(app.main(BOARD + argv, ready), 0)
        self.assertEqual(read, ["4711\n"])
        with self.assertRaises(OSError):
            open(path)  # noqa: PTH123, SIM115

    def test_where_it_cannot_be_written(self):
        self.refused(3, "-c", self.conf("pid_file /none/such/pid"), "--pid", "4711")
        self.assertEqual(Broker.made.told, ["stop"])

    def test_nor_a_log(self):
        self.refused(3, "-c", self.conf("log_dest file /none/such/log"))
        self.assertIsNone(Broker.made)


class TestBudget(Case):
    def test_every_owner_has_a_line_and_the_sum_is_the_last(self):
        lines = app.budget("HOST").split("\n")
        sizes = [int(line[16:24]) for line in lines]
        self.assertEqual(sum(sizes[:-1]), sizes[-1])
        self.assertEqual(lines[-1].split()[0], "tables")

    def test_an_unknown_board(self):
        with self.assertRaises(ConfError):
            app.budget("ABACUS")

    def test_the_heap_is_checked_before_the_tables_are_made(self):
        app.borrow("start", "_check_heap", Limits().rows())
        if MICROPYTHON:
            large = Limits(message_bytes=1 << 26, message_block=4096).rows()
            with self.assertRaises(MemoryError) as caught:
                app.borrow("start", "_check_heap", large)
            self.assertIn("lower limit message_bytes (messages", str(caught.exception))

    def test_a_heap_in_pieces_is_told_from_one_that_is_too_small(self):
        Broker.too_large = True
        with self.assertRaises(MemoryError) as caught:
            app.borrow("start", "start", app.App(), BOARD[:])
        told = str(caught.exception)
        self.assertIn("are free lie in pieces too small for them; lower limit", told)
        need, size = Limits().ram_bytes(), max([row[1] for row in Limits().rows()])
        self.assertIn(f": the tables take {need} bytes, and the ", told)
        self.assertIn(f" message_bytes (messages take {size})", told)
