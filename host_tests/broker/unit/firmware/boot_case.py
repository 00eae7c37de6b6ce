# boot_case.py - the firmware's start with a fake program that may fail, in a folder of its own.
import os
import sys
import unittest

import board_case  # noqa: F401 - the folder of the firmware
import scratch

import slotmq_run
from slotmq_run import boot, boot_counter, safe

HOST = '{"board": "RPI_PICO_W", "link": "host", "watchdog": 0}'


class Broker:
    def __init__(self):
        self.seen = []  # when the tables were made, and the length of each turn
        self.turned = 0
        self.fail = None
        self.most = 0  # Ctrl-C after so many turns; 0: never

    def turn(self, ms):
        if self.most and self.turned == self.most:
            raise KeyboardInterrupt
        self.turned += 1
        self.seen.append(ms)
        if self.fail:
            raise self.fail


class Dog:
    """A watchdog that notes its calls, and those of others beside it."""

    calls = []  # noqa: RUF012

    def __init__(self, timeout_ms):
        Dog.calls.append(timeout_ms)

    def start(self):
        Dog.calls.append("start")

    def feed(self):
        Dog.calls.append("feed")

    def release(self):
        Dog.calls.append("release")


class App:
    """In place of slotmq.app."""

    def __init__(self):
        self.broker = Broker()
        self.status = 0
        self.refused = ["no heap"]
        self.arguments = None

    def main(self, arguments, on_ready):
        self.arguments = arguments
        if self.status:
            return self.status
        self.broker.seen.append("tables")
        try:
            on_ready(self.broker)
        except KeyboardInterrupt:
            return 0
        return 0


class Reset(Exception):
    pass


class Machine:
    WDT_RESET = 3

    def reset(self):
        raise Reset

    def reset_cause(self):
        return 1


class BootCase(unittest.TestCase):
    def setUp(self):
        self.kept = (
            boot_counter._boot,
            boot.app,
            boot_counter.machine,
            safe.stay,
            boot.network_link.make,
        )
        slotmq_run.safe = sys.modules["slotmq_run.safe"] = safe
        self.app = boot.app = App()
        boot_counter._boot = lambda: boot  # other tests import the modules anew
        self.folder = scratch.path()
        os.mkdir(self.folder)  # noqa: PTH102
        self.folder += "/"

    def tearDown(self):
        boot_counter._boot, boot.app, boot_counter.machine, safe.stay, boot.network_link.make = (
            self.kept
        )

    def write(self, name, text):
        with open(self.folder + name, "w") as file:  # noqa: PTH123
            file.write(text)

    def files(self):
        return sorted(os.listdir(self.folder))  # noqa: PTH208

    def on_a_board(self):
        boot_counter.machine = Machine()
        self.stayed = []
        safe.stay = lambda _folder, *facts: self.stayed.append(facts)
