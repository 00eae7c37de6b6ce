"""Journals of every version of the format that there was: today's code restores exactly what is
written down here. Their files in host_tests/support/golden/journal stay for ever."""

import unittest

import scratch
from invariants import broken
from media import Ram

from slotmq import Broker, Limits, Settings
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.reader import Reader, last_commit
from slotmq.journal.restore import restore

# ruff: noqa: PTH123, RUF005 - MicroPython has no pathlib, and no stars in a tuple
FOLDER = __file__.rsplit("/", 4)[0] + "/support/golden/journal/"
LIMITS = {"connections": 6, "sessions": 8, "subscriptions": 12, "messages": 24, "deliveries": 24}
SNAPSHOT = 3840
NONE = 0xFFFF
NEVER = 0x3FFFFFFF

# What the scene of tools/dev/golden_journal.py leaves, by its own words.
NOTE = b"&\0\1a\0\1b"
FIRST = (b"news/first", b"1st", 4, b"", 0, 0)
N0 = (b"news/0", b"n0" * 20, 4, b"", 0, 0)
N1 = (b"news/1", b"n1" * 20, 12, NOTE, 0, 0)
N2 = (b"news/2", b"n2" * 20, 12, NOTE, 35840, 0)
HELD = (b"news/held", b"71", 4, b"", 0, 0)
WAITS = (b"last/away", b"not back", 13, NOTE, 36000, 0)  # since its will was made
VERSION_1 = {
    "sessions": [
        (b"away", 0, 1, 600, -245, WAITS, 60, 355, 0),
        (b"five", 0, 1, NEVER, 0, None),
        (b"old", 0, 0, NEVER, -500, None),
        (b"reader", 0, 0, NEVER, 0, None),
        (b"writer", 0, 0, NEVER, 0, None),
    ],
    "subscriptions": [
        (b"away", b"jobs/+", 1, 0, 7, b"g"),
        (b"away", b"news/#", 2, 12, 300, b""),
        (b"old", b"+/b", 0, 0, 0, b""),
        (b"old", b"news/#", 1, 0, 0, b""),
        (b"reader", b"news/#", 2, 0, 0, b""),
        (b"reader", b"once", 1, 0, 0, b""),
    ],
    "received": [
        (b"writer", 72, (b"news/held", b"72", 5, b"", 0, 0)),
        (b"writer", 73, (b"news/held", b"73", 4, b"", 0, 0)),
    ],
    "deliveries": [
        (b"away", 0, 3, 0, 12, FIRST, b"", 300),
        (b"away", 1, 7, 0, 12, N0, b"", 300),
        (b"away", 2, 10, 0, 12, N1, b"", 300),
        (b"away", 3, 13, 0, 12, N2, b"", 300),
        (b"away", 4, 14, 0, 10, (b"jobs/1", b"do it", 10, NOTE, 0, 0), b"g", 7),
        (b"away", 5, 18, 0, 12, HELD, b"", 300),
        (b"old", 0, 2, 0, 10, FIRST, b"", 0),
        (b"old", 1, 6, 0, 10, N0, b"", 0),
        (b"old", 2, 9, 0, 10, N1, b"", 0),
        (b"old", 3, 12, 0, 10, N2, b"", 0),
        (b"old", 4, 17, 0, 10, HELD, b"", 0),
        (b"reader", 0, 1, 3, 4, None, b"", 0),  # released, before the compaction
        (b"reader", 1, 5, 3, 4, None, b"", 0),  # and behind it
        (b"reader", 2, 8, 0, 12, N1, b"", 0),
        (b"reader", 3, 11, 0, 12, N2, b"", 0),
        (b"reader", 4, 16, 0, 12, HELD, b"", 0),
    ],
    "retained": [
        (b"last/fleeting", b"gone", 11, NOTE, 0, 0),  # the power cut has ended its connection
        (b"state/a", bytes(range(256)), 13, NOTE, 35630, 0),
        (b"state/b", b"second", 3, b"", 0, 0),
        (b"state/far", b"0", 9, b"", 335543970, 63),
    ],
}

# Version 2 tells what was never sent, since its receiver was away: that has no DUP.
VERSION_2 = dict(VERSION_1)
_SENT = [row for row in VERSION_1["deliveries"] if row[0] == b"reader" or row[:2] == (b"away", 0)]
VERSION_2["deliveries"] = [
    row[:4] + (row[4] if row in _SENT else row[4] & ~8,) + row[5:]
    for row in VERSION_1["deliveries"]
]


def tables(broker):
    sessions = broker.sessions
    used = [n for n in range(sessions.slots) if sessions.used(n)]
    retained = [msg for msg in broker.retained.msg if msg != NONE]
    return {
        "sessions": sorted([session(broker, n) for n in used]),
        "subscriptions": sorted([row for n in used for row in subscriptions(broker, n)]),
        "received": sorted([row for n in used for row in received(broker, n)]),
        "deliveries": sorted([row for n in used for row in queue(broker, n)]),
        "retained": sorted([message(broker, msg) for msg in retained]),
    }


def session(broker, n):
    """client id, ends with its connection, of 5.0, expiry, left, will; its delay, due, since"""
    sessions, five = broker.sessions, broker.five
    will = sessions.will[n]
    row = (
        sessions.client_id(n),
        sessions.clean[n],
        broker.subscriptions.is_v5[n],
        five.expiry[n],
    )
    if will == NONE:
        return row + (sessions.left[n], None)
    row += (sessions.left[n], message(broker, will))
    return row + (five.will_delay[n], five.will_at[n], five.will_since[n])


def subscriptions(broker, n):
    """client id, filter, QoS, options, identifier, share name"""
    subs, five = broker.subscriptions, broker.five
    found = []
    sub = broker.sessions.first_sub[n]
    while sub != NONE:
        text = bytearray(64)
        start = subs.filter_text(subs.node[sub], text, 64)
        row = (broker.sessions.client_id(n), bytes(text[start:]), subs.qos[sub])
        row += (five.options[sub], five.identifier[sub], share(broker, five.share[sub]))
        found.append(row)
        sub = subs.next_in_session[sub]
    return found


def share(broker, group):
    name = bytearray(16)
    return bytes(name[: broker.five.shares.names.read(group, name, 0)]) if group != NONE else b""


def received(broker, n):
    """client id, packet id, the message that is held"""
    sessions = broker.sessions
    found = []
    for i in range(n * sessions.received, n * sessions.received + sessions.id_count[n]):
        held = sessions.id_msg[i]
        row = (sessions.client_id(n), sessions.ids[i])
        found.append(row + (message(broker, held) if held != NONE else None,))
    return found


def queue(broker, n):
    """client id, place in its queue, packet id, state, flags, message, share name, identifier"""
    deliveries, five = broker.deliveries, broker.five
    found = []
    entry = broker.sessions.head[n]
    while entry != NONE:
        msg = deliveries.msg[entry]
        row = (broker.sessions.client_id(n), len(found), entry + 1, deliveries.state[entry])
        row += (deliveries.flags[entry] & 31, message(broker, msg) if msg != NONE else None)
        found.append(row + (share(broker, five.group[entry]), five.ident[entry]))
        entry = deliveries.next[entry]
    return found


def message(broker, msg):
    """topic, payload, flags, properties, when it expires, and how many times 2^25 s later"""
    messages, five = broker.messages, broker.five
    topic = messages.topic_len[msg] + 2
    text = bytearray(topic + messages.payload_len[msg])
    messages.arena.move(messages.first[msg], 0, text, 0, len(text), 1)
    flags = messages.flags[msg] & 15
    props, expires, far = 0, 0, 0
    if flags & 8:
        props, expires, far = five.props[msg], five.expires[msg], five.far[msg]
    data = bytes(text[topic:])
    return bytes(text[2:topic]), data[props:], flags, data[:props], expires, far


def on_flash(name):
    device = Ram(8, 4096)
    with open(FOLDER + name, "rb") as file:
        file.readinto(device.data)
    return lambda: FlashMedium(device, SNAPSHOT)


def in_a_file(name):
    with open(FOLDER + name, "rb") as file:
        path = scratch.write(file.read())
    return lambda: FileMedium(path, SNAPSHOT, 1 << 20)


class TestVersion1(unittest.TestCase):
    maxDiff = None
    file, flash = "version-1.file", "version-1.flash"
    there = VERSION_1

    def restored(self, medium):
        said = []
        settings = Settings(sys_interval=0, qos2_delivery="release")
        broker = Broker(Limits(**LIMITS), settings)
        restore(broker, medium, said.append)
        medium.close()
        self.assertEqual(said, [])
        self.assertEqual(broken(broker), [])
        return broker

    def check(self, make):
        found = tables(self.restored(make()))
        for name in self.there:
            self.assertEqual(found[name], self.there[name])
        self.assertEqual(sorted(found), sorted(self.there))
        # What today's code makes of it is as good.
        self.assertEqual(tables(self.restored(make())), found)

    def test_a_file(self):
        self.check(in_a_file(self.file))

    def test_a_region_of_flash(self):
        self.check(on_flash(self.flash))

    def test_they_have_every_kind_of_record(self):
        for medium in (in_a_file(self.file)(), on_flash(self.flash)()):
            reader = Reader(medium, medium.generations()[0], 512)
            end, torn = last_commit(reader, 2)
            kinds, at = set(), 0
            while at < end:
                at = reader.after(at)
                self.assertTrue(reader.find(at))
                kinds.add(reader.kind)
                at = reader.next
            medium.close()
            self.assertEqual((sorted(kinds), torn), (list(range(1, 14)), 0))


class TestVersion2(TestVersion1):
    file, flash = "version-2.file", "version-2.flash"
    there = VERSION_2


class TestVersion2InOneCommit(TestVersion2):
    """Before a file's first rows were committed table by table."""

    file = "version-2-one-commit.file"
