# serve_micropython.py BOARD HOST PORT [NAME] - a broker whose heap is watched, on
# MicroPython; with a name it keeps a journal in NAME.db, or if the file NAME says "record SIZE
# BUDGET", it records everything in segments of that size in the folder `record`; if it says
# "bridge PORT PREFIX", it has a bridge to that port.
#
# It calls the loop itself, and reads commands of one byte from standard input:
#   b  begin: from now on the heap is locked around each turn, once more than the loop
#      itself does, so that no code may allocate
#   e  end: print how much the heap in use has changed since, and what was counted meanwhile
#   a  allocate a block, which must fail between begin and end
#   c  how many entries each table has, and how much heap is in use
# Answers are lines of kind, name and number, and "done".
import gc
import os
import socket
import sys

import micropython
import tables

from slotmq import Broker, Settings
from slotmq.platform import ondemand

_BLOCKED = micropython.const(2)
_SNDBUF = micropython.const(7)
_SEND_BUFFER = micropython.const(6400)  # as much as lwIP has on a Pico W


class Watched:
    def __init__(self, limits, host, port, path):
        settings = Settings()
        settings.sys_interval = 0  # $SYS allocates
        self.broker = Broker(limits, settings)
        if path:
            with open(path) as file:  # noqa: PTH123
                wanted = file.read().split()
        if path and wanted[0] == "record":
            self.record(int(wanted[1]), int(wanted[2]))
        elif path and wanted[0] != "bridge":
            from slotmq.journal.location import snapshot_bytes
            from slotmq.journal.medium_file import FileMedium
            from slotmq.journal.restore import restore

            restore(self.broker, FileMedium(path + ".db", snapshot_bytes(limits), 1 << 20))
        self.broker.listen(host, port)
        for listener in self.broker.loop.of_stream:
            listener.setsockopt(socket.SOL_SOCKET, _SNDBUF, _SEND_BUFFER)
        if path and wanted[0] == "bridge":
            topic = ("b/#", "both", 2, "", wanted[2].replace("-", ""))
            self.broker.bridge("up", "127.0.0.1:" + wanted[1], [topic], notifications=False)
        self.order = bytearray(1)
        self.locked = False
        self.before = 0
        self.turns = self.blocked = self.woken = 0
        self.was_blocked = False
        stdin = sys.stdin.buffer
        self.broker.loop.watch(stdin, self.read)
        print("done")

    def record(self, size, budget):
        from slotmq.recorder import start as record

        os.mkdir("record")  # noqa: PTH102
        settings = self.broker.settings
        settings.record = (b"#",)
        settings.record_segment_size = size
        settings.record_budget = budget
        settings.record_flush_interval = 1
        record.attach(self.broker, settings, "record/")

    def read(self, stream):
        if not stream.readinto(self.order, 1):
            self.order[0] = 113  # q: the end of the input

    def run(self):
        while self.order[0] != 113:
            if self.locked:
                micropython.heap_lock()
            self.broker.turn(250)
            self.look()
            if self.locked:
                micropython.heap_unlock()
            if self.order[0]:
                self.obey(chr(self.order[0]))

    def look(self):
        # Count how often a client became blocked, and how often it went on.
        self.turns += 1
        if self.broker.loop.exhausted or self.broker.loop.exceptions:
            raise RuntimeError("a defect, see the log")
        if self.order[0] == 97:
            bytearray(16)
        blocked = False
        for out in self.broker.conns.out:
            if out == _BLOCKED:
                blocked = True
        if blocked != self.was_blocked:
            self.was_blocked = blocked
            if blocked:
                self.blocked += 1
            else:
                self.woken += 1

    def obey(self, order):
        if order == "e":
            changed = gc.mem_alloc() - self.before
            self.locked = False
            print("heap changed", changed)
            for name in ("turns", "blocked", "woken"):
                print("seen", name, getattr(self, name))
        elif order == "c":
            self.tell_counts()
        self.order[0] = 0
        print("done")
        if order == "b":
            self.turns = self.blocked = self.woken = 0
            self.locked = True
            gc.collect()
            self.before = gc.mem_alloc()

    def tell_counts(self):
        for name, count in tables.counts(self.broker).items():
            print("count", name, count)
        journal = self.broker.journal
        for name in ("commits", "generation") if journal else ():
            print("count", name, getattr(journal, name))
        print("count loaded", len(ondemand.loaded))
        gc.collect()
        print("heap used", gc.mem_alloc())


def main(board, host, port, path=None):
    preset = __import__("slotmq_boards." + board + ".limits", None, None, ["LIMITS"])
    Watched(preset.LIMITS, host, int(port), path).run()


main(*sys.argv[1:])
