# app.py - the program around a Broker: its run, its orders, its reload, its end.
#
# Owns what a process or a board has beside the broker: settings, log, pid file and
# the orders on standard input. How it starts is in app/start.py, how it is configured
# in config/mosquitto_conf.py; both are borrowed for a moment and given back, since a running
# broker needs the heap more. A start that is refused is one line on standard error and a status as
# mosquitto has it: 3 for what the user wrote, 1 for what the machine could not do. Allocates at
# start and on orders.
import os
import sys

from slotmq.config.settings import ConfError, Settings
from slotmq.platform import log
from slotmq.platform.ondemand import borrow
from slotmq.platform.runtime import const

_ALL_TYPES = const(127)
_ERROR = const(1)
refused: list = []  # why main() has refused to start, for who runs it
# Orders and the methods of Broker that carry them out. The end of the stream means
# that whoever gave orders has gone.
_ORDERS = {b"s": "stop", b"": "stop", b"r": "reload", b"c": "compact", b"t": "dump_tree"}


def main(argv, on_ready=None):
    """Run the broker until it is told to stop; the exit status."""
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
    # A function of its own: what its frame has pointed to keeps none of the start's code in
    # the heap while the broker runs.
    try:
        told = borrow("app.start", "start", app, list(argv))
        # One after the other: each has the space that the one before it took.
        if "record" in app.lines:
            borrow("recorder.start", "keep", app)
        if app.settings.persistence:
            borrow("journal.start", "keep", app)
        app.lines = {}
        print(told)
    except (ConfError, MemoryError, OSError, ValueError) as error:
        app.end()
        refused[:] = (str(error),)
        print("slotmq:", error, file=sys.stderr)
        return 3 if isinstance(error, (ConfError, ValueError)) else 1
    return 0


def memory():
    """What an ESP32's heap and Wi-Fi have of its memory, as text."""
    return borrow("platform.esp32_memory", "told")


class App:
    def __init__(self):
        self.conf = None  # the path of the configuration
        self.verbose = False
        self.settings = Settings()
        self.limits = None
        self.broker = None
        self.pid_file = None
        self.board = "HOST"
        self.lines = {}  # of the configuration, where it keeps a journal or records
        self.lock = None  # the open file that keeps others from this one's journal

    def open_log(self):
        mask = _ALL_TYPES if self.verbose else self.settings.log_type
        log.open_all(self.settings.log_dest, mask)
        self.broker.log_mask = mask
        self.broker.log = log.write

    def obey(self, stream):
        act = getattr(self.broker, _ORDERS.get(stream.read(1), ""), None)
        if act:
            try:
                act()
            except (MemoryError, OSError) as error:
                log.write(_ERROR, "Not done: %s" % error)

    def reload(self):
        if self.conf:
            borrow("config.mosquitto_conf", "reload_app", self)

    def end(self):
        """Close in order whatever is open, after a refused start too."""
        if self.broker:
            self.broker.stop()
            self.broker.run()
        if self.pid_file:
            try:
                os.remove(self.pid_file)
            except OSError:
                pass  # somebody else has
        if self.lock:
            self.lock.close()
        log.close()
