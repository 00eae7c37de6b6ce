"""A recorder without a broker or with one, in a folder of its own; reads its segments."""

import os
import unittest
from binascii import crc32, hexlify
from struct import unpack

import scratch
from broker_case import BrokerCase

from slotmq import Limits
from slotmq.fast import Names
from slotmq.platform import ondemand
from slotmq.platform.arrays import u16
from slotmq.recorder import files, segments, start
from slotmq.recorder.writer import Recorder

NONE = 0xFFFF
DEF, MESSAGE, EVENT, ANCHOR, GAP = 1, 2, 3, 4, 5


def new_folder():
    folder = scratch.path() + "/"
    os.mkdir(folder)  # noqa: PTH102
    return folder


def attach(broker, folder=None, **options):
    """A recorder of all messages of this broker; its interceptor."""
    values = {"record": (b"#",), "record_segment_size": 4096, "record_events": False}
    values["remote_admin"] = False
    values.update(options)
    for name, value in values.items():
        setattr(broker.settings, name, value)
    return start.attach(broker, broker.settings, folder or new_folder())


def read(rec, segment):
    with open(files.path(rec, segment), "rb") as file:  # noqa: PTH123
        return file.read()


def records(data):
    """(type, flags, seq, payload) of the whole records of a segment."""
    return [each[:4] for each in all_fields(data)]


def all_fields(data):
    """The same, with the ids of client and topic."""
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
    for kind, flags, _, payload, client, topic in all_fields(data):
        if kind == DEF and flags:
            topics[topic] = payload
        elif kind == DEF:
            names[client] = payload
        elif kind == MESSAGE:
            found.append((names[client], topics[topic], flags, payload))
    return found


class RecorderCase(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()
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

    def record(self, rec, payload, topic=b"t"):
        buf = topic + payload
        rec.message(NONE, buf, 0, len(topic), 0, buf, len(topic), len(payload))

    def payloads(self, data):
        return [payload for kind, _, _, payload in records(data) if kind == MESSAGE]

    def clear(self, rec):
        """Remove all segments."""
        files.close(rec)
        for segment in files.look(rec):
            os.remove(files.path(rec, segment))  # noqa: PTH107


class BrokerRecorderCase(BrokerCase):
    def start(self, limits=None, remote=False, interval=10, **settings):
        super().start(limits, **settings)
        interceptor = attach(self.broker, remote_admin=remote, record_flush_interval=interval)
        self.rec = interceptor.rec

    def tearDown(self):
        if self.broker.record.remote:
            self.broker.record.remote = False
            self.broker.publish(self.topic("head"), b"", retain=True)
        files.close(self.rec)
        super().tearDown()
        ondemand.forget_all()

    def restart(self, *args, **options):
        self.tearDown()
        self.start(*args, **options)

    def topic(self, name):
        return f"$SLOTMQ/record/{hexlify(self.rec.board).decode()}/{name}"

    def send(self, client, data):
        client.send(data)
        self.world.turn(3)

    def segments(self):
        """The content of each segment."""
        self.assertTrue(self.rec.flush())
        return [read(self.rec, segment) for segment in files.look(self.rec)]

    def records(self):
        return [record for data in self.segments() for record in records(data)]
