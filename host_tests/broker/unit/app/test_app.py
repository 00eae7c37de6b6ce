"""The program around a fake broker: arguments, orders, reload, exit status. With the real broker
host/test_start.py and broker/test_app.py show it."""

import os

import scratch
from app_case import BOARD, Broker, Case, Stream

from slotmq import app
from slotmq.config.limits import Limits
from slotmq.platform import log
from slotmq.platform.runtime import MICROPYTHON


class TestArguments(Case):
    def test_wrong_arguments_are_refused(self):
        wrong = [["-x"], ["-p"], ["1883"], ["-c"], ["--board", "ABACUS"], ["-c", scratch.path()]]
        wrong += [["-p", port] for port in ("0", "65536", "-1", "mqtt", "")]
        for argv in wrong:
            with self.subTest(argv=argv):
                self.refused(3, *argv)

    def test_a_configuration_with_an_error_is_refused_before_there_is_a_broker(self):
        for line in ("max_qos 3", "log_dest file /none/such/log"):
            with self.subTest(line=line):
                self.refused(3, "-c", self.conf(line))
                self.assertIsNone(Broker.made)

    def test_the_list_of_arguments_is_not_changed(self):
        argv = BOARD + ["-p", "1884"]  # noqa: RUF005
        self.assertEqual(app.main(argv), 0)
        self.assertEqual(argv[-2:], ["-p", "1884"])


class TestLinesWithoutEffect(Case):
    def test_the_log_names_each_at_the_start(self):
        path = self.conf("user mosquitto\nmax_qos 1\nlog_timestamp false")
        self.started("-c", path)
        lines = [line for line in self.log_text().splitlines() if "has no effect" in line]
        self.assertEqual(len(lines), 2)
        self.assertIn(f": {path}:2: user has no effect: ", lines[0])
        self.assertIn(f": {path}:4: log_timestamp has no effect: ", lines[1])


class TestOrders(Case):
    def test_each_byte_calls_a_method_of_the_broker(self):
        Broker.orders = b"tr"
        path = self.conf("")
        told = self.started("--orders", "-c", path).told
        self.assertEqual(told, ["dump_tree", "reload", "apply_settings", "stop"])

    def test_without_the_option_the_stream_is_not_watched(self):
        self.assertIsNone(self.started().watched)

    def test_the_end_of_the_stream_stops_the_broker(self):
        program = app.App()
        program.broker = Broker(None, None)
        program.obey(Stream(b""))
        self.assertEqual(program.broker.told, ["stop"])

    def test_unknown_orders_are_ignored(self):
        program = app.App()
        program.broker = Broker(None, None)
        for order in (b"?", b"c", None):  # no journal to compact; no byte after all
            program.obey(Stream(order))
        self.assertEqual(program.broker.told, [])


class NoMemory:
    @property
    def slots(self):
        raise MemoryError("no memory")


class Rules:
    def __init__(self, has_memory):
        self.has_memory = has_memory
        self.count = 0

    def reload(self):
        self.count += 1
        if not self.has_memory:
            raise MemoryError("no memory")


class TestReload(Case):
    def reload(self, before, after, *argv, **broker):
        path = self.conf(before)
        program = app.App()
        app.borrow("app.start", "start", program, BOARD + ["-c", path] + list(argv))  # noqa: RUF005
        with open(path, "w") as file:  # noqa: PTH123
            file.write(f"log_dest file {self.logged}\n{after}\n")
        for name in broker:
            setattr(program.broker, name, broker[name])
        program.reload()
        self.mask = log.mask
        program.end()
        return program

    def test_a_changed_value_is_applied_and_logged(self):
        program = self.reload("max_qos 1", "max_qos 0")
        self.assertEqual(program.settings.max_qos, 0)
        self.assertEqual(program.broker.told, ["apply_settings", "stop"])
        self.assertIn("changed: max_qos.", self.log_text())

    def test_without_memory_for_one_file_the_other_is_read(self):
        path = scratch.write("# nobody\n")
        conf = f"password_file {path}\nacl_file {path}"
        for has_memory in (False, True):
            rules = Rules(has_memory)
            program = self.reload(conf, conf, users=NoMemory(), acl=rules)
            self.assertEqual(rules.count, 1)
            self.assertEqual(program.broker.told, ["apply_settings", "stop"])
            self.assertIn("The users stay as they are: no memory.\n", self.log_text())
            self.assertIn(f"Reloaded {program.conf}; changed: nothing.", self.log_text())
            self.assertEqual("The old rules stay: no memory\n" in self.log_text(), not has_memory)
            self.logged = scratch.path()

    def test_a_listener_of_the_network_stays_closed(self):
        host = "--host", "0.0.0.0"
        program = self.reload("max_qos 1", "max_qos 0", *host)
        self.assertFalse(program.settings.allow_anonymous)
        program = self.reload("max_qos 1", "allow_anonymous true", *host)
        self.assertTrue(program.settings.allow_anonymous)
        program = self.reload("allow_anonymous true", "max_qos 1", *host)
        self.assertFalse(program.settings.allow_anonymous)

    def test_a_change_that_needs_a_restart_is_logged(self):
        self.reload("listener 1", "listener 2")
        self.assertIn("changed: nothing.", self.log_text())
        self.assertIn("restart changes: listener.", self.log_text())

    def test_a_file_with_an_error_changes_nothing(self):
        program = self.reload("max_qos 1", "max_qos 0\nmax_qos 3")
        self.assertEqual(program.settings.max_qos, 1)
        self.assertEqual(program.broker.told, ["stop"])
        self.assertIn("3: max_qos: expected", self.log_text())

    def test_a_log_file_that_cannot_be_opened_changes_nothing(self):
        program = self.reload("max_qos 1", "max_qos 0\nlog_dest file /none/such/log")
        self.assertEqual((program.settings.max_qos, self.mask), (1, 15))
        self.assertIn("3: log_dest: expected a file", self.log_text())

    def test_the_types_of_the_log_are_reloaded(self):
        made = self.reload("", "log_type error").broker
        self.assertEqual((self.mask, made.log_mask), (1, 1))
        made = self.reload("", "log_type error", "-v").broker
        self.assertEqual((self.mask, made.log_mask), (127, 127))

    def test_without_a_destination_no_text_is_made(self):
        made = self.reload("", "log_dest none").broker
        self.assertEqual(made.log_mask, 0)

    def test_without_a_configuration_nothing_is_reloaded(self):
        program = app.App()
        program.broker = Broker(None, None)
        program.reload()
        self.assertEqual(program.broker.told, [])


class TestModes(Case):
    def test_only_its_user_reads_the_log(self):
        self.started("-c", self.conf(""))
        self.assertEqual(os.stat(self.logged)[0] & 0o77, 0)  # noqa: PTH116


class TestPidFile(Case):
    def test_it_exists_while_the_broker_runs(self):
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

    def test_if_it_cannot_be_written_the_start_fails(self):
        self.refused(3, "-c", self.conf("pid_file /none/such/pid"), "--pid", "4711")
        self.assertEqual(Broker.made.told, ["stop"])


class TestHeap(Case):
    def test_tables_that_do_not_fit_the_heap_are_refused(self):
        own, asked = Limits(), app.App()
        app.borrow("app.start", "_check_heap", own.rows(), 10240, asked, own)
        for name, value in (("message_bytes", 30 << 20), ("tls_connections", 1023)):
            if MICROPYTHON:
                asked.limits = own.replaced({name: value, "message_block": 512})
                with self.assertRaises(MemoryError) as caught:
                    app.borrow("app.start", "_check_heap", asked.limits.rows(), 10240, asked, own)
                told = str(caught.exception)
                self.assertIn(f" too few; lower limit {name} (", told)
                self.assertTrue(told.endswith(f" than with {value})"), told)

    def test_a_fragmented_heap_is_reported_as_such(self):
        Broker.too_large = True
        with self.assertRaises(MemoryError) as caught:
            app.borrow("app.start", "start", app.App(), BOARD[:])
        told = str(caught.exception)
        self.assertIn("are free are in pieces too small for them; lower limits", told)
        need, size = Limits().ram_bytes(), max([row[1] for row in Limits().rows()])
        self.assertIn(f": the tables take {need} bytes, and the ", told)
        self.assertTrue(told.endswith(f"first those of messages, which take {size}"), told)
