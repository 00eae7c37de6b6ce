"""The retained head of a ring is not written to the journal, so it wears no flash."""

import json

from journal_case import JournalCase
from packets import publish, subscribe
from recorder_case import attach

from slotmq.platform import ondemand
from slotmq.recorder import files

FLUSH = 10  # seconds


class TestRingHead(JournalCase):
    rec = None

    def start(self):
        if self.rec:
            files.close(self.rec)
        super().start()
        self.rec = attach(self.broker, remote_admin=True).rec

    def tearDown(self):
        files.close(self.rec)
        ondemand.forget_all()
        super().tearDown()

    def publish_for(self, client, seconds):
        """A message of QoS 0 each second: the head changes with each flush."""
        for _ in range(seconds):
            client.send(publish("t", b"21.5"))
            self.wait(1)

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

    def test_a_new_head_causes_no_commit(self):
        client = self.client("c")
        self.publish_for(client, FLUSH + 2)
        before = self.broker.journal.commits, self.medium.end
        first = self.heads()[0]
        self.publish_for(client, 6 * FLUSH)
        after = self.broker.journal.commits, self.medium.end
        (last,) = self.heads()
        self.assertTrue(last["next"] >= first["next"] + 5 * FLUSH)
        self.assertEqual(after, before)

    def test_a_head_that_a_compaction_stored_is_deleted_once(self):
        client = self.client("c")
        self.publish_for(client, FLUSH + 2)
        self.assertTrue(self.broker.journal.try_compaction())
        before = self.broker.journal.commits
        self.publish_for(client, 6 * FLUSH)
        self.assertEqual(self.broker.journal.commits, before + 1)
        self.assertEqual(len(self.heads()), 1)

    def test_after_a_power_cut_other_messages_are_restored_and_the_head_is_new(self):
        client = self.client("c")
        for topic in ("a", "b"):
            client.send(publish(topic, b"kept " + topic.encode(), 1, 7, retain=True))
            self.world.turn(3)
        self.publish_for(client, FLUSH + 2)
        self.assertTrue(self.broker.journal.try_compaction())
        self.publish_for(client, FLUSH)
        client.send(publish("c", b"kept c", 1, 8, retain=True))
        self.publish_for(client, FLUSH)
        self.reboot()
        client = self.client("s")
        client.send(subscribe(1, "#", 0))
        client.send(subscribe(1, "$SLOTMQ/#", 0))
        self.world.turn(3)
        found = [data for data in client.packets() if data[0] == 0x31]
        expected = [publish(topic, b"kept " + topic.encode(), retain=True) for topic in "abc"]
        self.assertEqual(sorted(found), sorted(expected))
        self.publish_for(client, FLUSH + 2)
        self.assertEqual([head["boot"] for head in self.heads()], [self.rec.boot])
