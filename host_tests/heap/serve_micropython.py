# serve_micropython.py BOARD HOST PORT - a broker whose heap is watched, on MicroPython.
#
# It turns the loop itself, and obeys orders of one byte from standard input:
#   b  begin: from now on the heap is locked around each turn, once more than the loop
#      itself does, so that nothing at all may allocate
#   e  end: how much the heap in use has changed since, and what was seen meanwhile
#   a  allocate a block, as nothing may between begin and end
#   c  how many entries each table has, and how much heap is in use
# Answers are lines of kind, name and number, and "done".
import gc
import socket
import sys

import micropython

from slotmq import Broker, Settings

_BLOCKED = micropython.const(2)
_SNDBUF = micropython.const(7)
_SEND_BUFFER = micropython.const(6400)  # as much as lwIP has on a Pico W


class Watched:
    def __init__(self, limits, host, port):
        settings = Settings()
        settings.sys_interval = 0  # the control plane's, and it allocates
        self.broker = Broker(limits, settings)
        self.broker.listen(host, port)
        for listener in self.broker.loop.of_stream:
            listener.setsockopt(socket.SOL_SOCKET, _SNDBUF, _SEND_BUFFER)
        self.order = bytearray(1)
        self.locked = False
        self.before = 0
        self.turns = self.blocked = self.woken = 0
        self.was_blocked = False
        stdin = sys.stdin.buffer
        self.broker.loop.watch(stdin, self.read)
        print("done")

    def read(self, stream):
        if not stream.readinto(self.order, 1):
            self.order[0] = 113  # q: whoever gave orders has gone

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
        # Is a client blocked, and how often did one become so or go on again?
        self.turns += 1
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
        for name, count in counts(self.broker):
            print("count", name, count)
        gc.collect()
        print("heap used", gc.mem_alloc())


def counts(broker):
    """(name, entries) of whatever a client could leave behind."""
    conns = broker.conns
    yield "connections", conns.count
    yield "streams", len(broker.loop.of_stream)
    yield "paused", broker.loop.paused_count
    yield "ending", broker.ending_count
    yield "dirty", conns.counts[0]
    yield "packets held", sum(conns.held)
    yield "whole-packet buffers", sum(owner != 0xFFFF for owner in conns.big_owner)
    yield "messages in parts", sum(msg != 0xFFFF for msg in conns.part_msg)
    yield "sessions", broker.sessions.names.count()
    yield "client id blocks free", broker.sessions.names.text.free_blocks()
    yield "ids received", sum(broker.sessions.id_count)
    yield "scans", sum(broker.sessions.scans)
    yield "subscriptions", broker.subscriptions.count
    yield "nodes", broker.subscriptions.nodes.count()
    yield "node blocks free", broker.subscriptions.nodes.text.free_blocks()
    yield "retained", broker.retained.names.count()
    yield "retained blocks free", broker.retained.names.text.free_blocks()
    yield "messages", broker.messages.count[0]
    yield "message blocks free", broker.messages.arena.free_blocks()
    yield "deliveries", broker.deliveries.count[0]
    yield "pending", broker.deliveries.pending[0]


def main(board, host, port):
    preset = __import__("slotmq_boards." + board + ".limits", None, None, ["LIMITS"])
    Watched(preset.LIMITS, host, int(port)).run()


main(*sys.argv[1:])
