# app: the program around a Broker: run, orders, reload, shutdown.
#
# Owns what a process or a board has beside the broker: settings, log, pid file and the orders on
# standard input. The steps of a start are in app/start.py (arguments, configuration, broker,
# listeners), recorder/start.py and journal/start.py. These and config/mosquitto_conf.py are loaded
# only while they are used, because a running broker needs the heap. A start that fails writes one
# line to standard error and returns mosquitto's exit status: 3 for an error in the configuration
# or the arguments, 1 for an error of the system. Allocates at the start and on orders.
import os
import sys

from slotmq.config.settings import ConfError, Settings
from slotmq.constants import ERROR
from slotmq.platform import log
from slotmq.platform.ondemand import borrow

refused: list = []  # why main() did not start, for its caller
# Orders and the methods of Broker that obey them. At the end of the stream nobody is left to send
# orders, and the broker stops.
_ORDERS = {b"s": "stop", b"": "stop", b"r": "reload", b"c": "compact", b"t": "dump_tree"}


def main(argv, on_ready=None):
    """Run the broker until it is stopped; -> the exit status."""
    if not _start:
        print("slotmq: a second start needs a reset", file=sys.stderr)
        return 1
    app = App()
    status = _start(app, argv)
    if status:
        return status
    try:
        if on_ready:
            on_ready(app.broker)
        app.broker.run()
    except KeyboardInterrupt:
        pass
    finally:
        app.end()
    return 0


def _start(app, argv):
    # A function of its own, so that no frame refers to the start's code while the broker runs: the
    # collector can free it.
    try:
        headline = borrow("app.start", "start", app, list(argv))
        # One step after the other: each uses the heap that the one before it has freed.
        if "record" in app.lines:
            borrow("recorder.start", "make", app)
        if app.settings.persistence:
            borrow("journal.start", "start", app)
        if app.settings.connections:
            borrow("bridge.start", "start", app)
        app.lines = {}
        print(headline)
        log.write(0, headline)
    except (ConfError, MemoryError, OSError, ValueError) as error:
        log.write(0, "The start ends: %s" % error)
        app.end()
        refused[:] = (str(error),)
        print("slotmq:", error, file=sys.stderr)
        return 3 if isinstance(error, (ConfError, ValueError)) else 1
    return 0


def memory():
    """What an ESP32's heap leaves to Wi-Fi, as text."""
    return borrow("platform.esp32_memory", "report")


def find(*args):
    """Look up a name on a board: see find() of platform/dns.py."""
    return borrow("platform.dns", "find", *args)


class App:
    is_public = False  # does the command line ask for a listener of the network?

    def __init__(self):
        self.conf = None  # the path of the configuration
        self.verbose = False
        self.settings = Settings()
        self.limits = None
        self.broker = None
        self.pid_file = None
        self.board = "HOST"
        self.lines = {}  # line numbers of the configuration, until journal and recorder started
        self.lock = None  # the open file that keeps other brokers from this one's journal

    def obey(self, stream):
        act = getattr(self.broker, _ORDERS.get(stream.read(1), ""), None)
        if act:
            try:
                act()
            except (MemoryError, OSError) as error:
                log.write(ERROR, "Not done: %s" % error)

    def reload(self):
        if self.conf:
            borrow("config.reload", "reload_app", self)

    def end(self):
        """Stop the broker and close all files, also after a start that failed."""
        if self.broker:
            self.broker.stop()
            self.broker.run()
        if self.pid_file:
            try:
                os.remove(self.pid_file)
            except OSError:
                pass  # it has been removed already
        if self.lock:
            self.lock.close()
        log.write(0, "slotmq ends")
        if log.outs:
            borrow("app.log_dests", "close")
