"""A Recorder without a broker, in a folder of its own, and what its segments hold."""

import os
import unittest
from binascii import crc32
from struct import unpack

import scratch

from slotmq import Limits
from slotmq.fast import Names
from slotmq.platform.arrays import u16
from slotmq.recorder import files, segments
from slotmq.recorder.writer import Recorder

NONE = 0xFFFF
DEF, MESSAGE, EVENT, ANCHOR, GAP = 1, 2, 3, 4, 5


def records(data):
    """(type, flags, seq, payload) of the whole records of a segment."""
    return [each[:4] for each in whole_records(data)]


def whole_records(data):
    """The same, and the ids of client and topic."""
    found = []
    at = 32
    while at + 20 <= len(data):
        crc, total, kind, flags, seq, _, client, topic = unpack("<IHBBIIHH", data[at : at + 20])
        if total == NONE or at + total > len(data) or crc32(data[at + 4 : at + total]) != crc:
            break
        found.append((kind, flags, seq, data[at + 20 : at + total], client, topic))
        at += total
    return found


def messages(data):
    """(client id, topic, flags, payload) of the messages of a segment."""
    found = []
    names = {NONE: b""}
    topics = {}
    for kind, flags, _, payload, client, topic in whole_records(data):
        if kind == DEF and flags:
            topics[topic] = payload
        elif kind == DEF:
            names[client] = payload
        elif kind == MESSAGE:
            found.append((names[client], topics[topic], flags, payload))
    return found


class RecorderCase(unittest.TestCase):
    def setUp(self):
        self.folder = scratch.path() + "/"
        os.mkdir(self.folder)  # noqa: PTH102

        self.rec = None

    def tearDown(self):
        files.close(self.rec)

    def boot(self, boot=1, size=1024, most=4, stops=False):
        self.clients = Names(8, 512)
        rec = Recorder(self.folder, size, most, self.clients, u16(1), Limits(), (b"#",), stops)
        self.rec = rec
        rec.board, rec.boot = b"12345678", boot
        files.look(rec)
        segments.next_segment(rec, 0)
        segments.event(rec, 1, b"\0")
        return rec

    def say(self, rec, payload, topic=b"t"):
        buf = topic + payload
        rec.message(NONE, buf, 0, len(topic), 0, buf, len(topic), len(payload))

    def read(self, rec, segment):
        with open(files.path(rec, segment), "rb") as file:  # noqa: PTH123
            return file.read()

    def payloads(self, data):
        return [payload for kind, _, _, payload in records(data) if kind == MESSAGE]

    def empty(self, rec):
        """A ring as before its first start."""
        files.close(rec)
        for segment in files.look(rec):
            os.remove(files.path(rec, segment))  # noqa: PTH107
