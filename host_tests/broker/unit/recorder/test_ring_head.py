"""The retained head of a ring and the journal: it wears no flash, and nothing is taken for it."""

import json
import os

import scratch
from journal_case import JournalCase
from packets import publish, subscribe

from slotmq.platform import ondemand
from slotmq.recorder import files, start

FLUSH = 10  # seconds
HEAD = b"$SLOTMQ/record/"


class TestRecordHead(JournalCase):
    rec = None

    def start(self):
        if self.rec:
            files.close(self.rec)
        super().start()
        settings = self.broker.settings
        settings.record = (b"#",)
        settings.remote_admin = True
        settings.record_events = False
        folder = scratch.path() + "/"
        os.mkdir(folder)  # noqa: PTH102
        self.rec = start.attach(self.broker, settings, folder).rec

    def tearDown(self):
        files.close(self.rec)
        ondemand.forget_all()
        super().tearDown()

    def pass_(self, client, seconds):
        """Messages of QoS 0, one a second: the head changes with each flush."""
        for _ in range(seconds):
            client.send(publish("t", b"21.5"))
            self.world.turn(10, ms=100)

    def heads(self):
        """The retained heads that a new subscriber gets."""
        client = self.client("harvester" + str(self.broker.now))
        client.send(subscribe(1, "$SLOTMQ/record/+/head", 0))
        self.world.turn(3)
        found = []
        for data in client.packets():
            if data[0] == 0x31:
                at = data.index(b"{")
                found.append(json.loads(data[at:]))
        return found

    def test_the_head_costs_no_commit(self):
        client = self.client("c")
        self.pass_(client, FLUSH + 2)
        before = self.broker.journal.commits, self.medium.end
        first = self.heads()[0]
        self.pass_(client, 6 * FLUSH)
        after = self.broker.journal.commits, self.medium.end
        (last,) = self.heads()
        self.assertTrue(last["next"] >= first["next"] + 5 * FLUSH)
        self.assertEqual(after, before)

    def test_one_that_a_compaction_has_taken_is_taken_out_once(self):
        client = self.client("c")
        self.pass_(client, FLUSH + 2)
        self.assertTrue(self.broker.journal.try_compaction())
        before = self.broker.journal.commits
        self.pass_(client, 6 * FLUSH)
        self.assertEqual(self.broker.journal.commits, before + 1)
        self.assertEqual(len(self.heads()), 1)

    def test_after_a_power_cut_nothing_else_is_where_it_was(self):
        client = self.client("c")
        for topic in ("a", "b"):
            client.send(publish(topic, b"kept " + topic.encode(), 1, 7, retain=True))
            self.world.turn(3)
        self.pass_(client, FLUSH + 2)
        self.assertTrue(self.broker.journal.try_compaction())
        self.pass_(client, FLUSH)
        client.send(publish("c", b"kept c", 1, 8, retain=True))
        self.pass_(client, FLUSH)
        self.reboot()
        client = self.client("s")
        client.send(subscribe(1, "#", 0))
        client.send(subscribe(1, "$SLOTMQ/#", 0))
        self.world.turn(3)
        found = [data for data in client.packets() if data[0] == 0x31]
        expected = [publish(topic, b"kept " + topic.encode(), retain=True) for topic in "abc"]
        self.assertEqual(sorted(found), sorted(expected))
        self.pass_(client, FLUSH + 2)
        self.assertEqual([head["boot"] for head in self.heads()], [self.rec.boot])
