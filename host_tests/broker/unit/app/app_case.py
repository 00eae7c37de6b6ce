# app_case.py - the program around a fake broker: start, listeners, orders, end.
import sys
import unittest

import scratch

from slotmq import app, broker
from slotmq.platform import log

BOARD = ["--board", "RPI_PICO_W"]  # its tables fit the heap of the tests


class Broker:
    """Records the calls of its methods; `run` passes it the orders."""

    made = None  # the last one
    too_large = False  # do its tables not fit the heap?
    orders = b"s"
    errors = {}  # noqa: RUF012 - listen's, by (host, port)

    def __init__(self, limits, settings):
        if Broker.too_large:
            raise MemoryError
        Broker.made = self
        self.limits = limits
        self.settings = settings
        self.loop = self.retained = LOOP
        self.sessions = Sessions
        LOOP.watch = self.watch
        self.told = []
        self.opened = []
        self.stopped = False
        self.watched = self.owners = self.acl = self.five = None

    def listen(self, host, port, most, options=None):
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


class Sessions:
    ids_high = (0, 0, 20)


class Loop:
    pass


LOOP = Loop()  # one for all: a start on MicroPython forgets how it is made


def made(*args):
    """A Broker of a class of its own, whose constructor a start on MicroPython forgets."""
    return type("Made", (Broker,), {})(*args)


class Stream:
    def __init__(self, content):
        self.content = content

    def read(self, n):
        assert n == 1
        return self.content


class Case(unittest.TestCase):
    def setUp(self):
        self.kept = broker.Broker
        broker.Broker = made
        sys.modules.pop("slotmq.app.start", None)  # if another test has it, with the real one
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
