"""Faults to plant in the journal: what it writes, when, and what a start reads."""

from .faults import Fault

FAULTS = (
    # When the journal is written
    Fault(
        "acknowledged before the commit",
        "journal/writer.py",
        "        if changed and self.always or not self.whole:",
        "        if not self.whole:",
    ),
    Fault(
        "a full outgoing buffer is sent before the commit",
        "net/loop.py",
        "        if journal and not journal.commit():\n            if n and",
        "        if journal and False:\n            if n and",
    ),
    Fault(
        "a commit has half the effect of a packet",
        "journal/writer.py",
        "        if broker.no_commit or not self.whole and now < self.retry_at:",
        "        if not self.whole and now < self.retry_at:",
        500,
    ),
    Fault(
        "the switch comes before the new generation is written",
        "journal/compaction.py",
        "    journal.write()\n    medium.switch()",
        "    medium.switch()\n    journal.write()",
    ),
    Fault(
        "a file is not synced",
        "journal/medium_file.py",
        "            os.fsync(self.new.fileno())",
        "            pass",
    ),
    Fault(
        "a new generation overwrites the old one",
        "journal/medium_flash_start.py",
        "    medium.base = (medium.first + medium.length + skip) % medium.blocks",
        "    medium.base = (medium.first + medium.length + skip - 1) % medium.blocks",
    ),
    Fault(
        "a stop does not store the time",
        "journal/writer.py",
        "self.interval = self.retry_at = self.time_interval = 0",
        "self.interval = self.retry_at = 0",
    ),
    Fault(
        "the time is stored only with other changes",
        "journal/writer.py",
        "_MINUTE = const(600)",
        "_MINUTE = const(600000)",
    ),
    # What is written
    Fault(
        "a received PUBREC is not stored",
        "fast/deliveries_cpython.py",
        "        d.flags[entry] = _CHANGED | 4\n        d.count[_UNSAVED] = 1\n",
        "        d.flags[entry] = 4\n",
    ),
    Fault(
        "received ids are not stored",
        "tables/sessions.py",
        "        self.ids_high[1] = 1",
        "        self.ids_high[1] = 0",
    ),
    Fault(
        "a retained message is cleared late",
        "tables/retained.py",
        "        self.dirty[slot] |= 1\n        self.changed = True",
        "        self.dirty[slot] |= 1\n        self.changed = self.changed or msg != _NONE",
    ),
    Fault(
        "new deliveries are written in the order of their slots",
        "journal/writer.py",
        "            while before != _NONE and flags[before] & _CHANGED:",
        "            while False:",
    ),
    Fault(
        "a finished delivery is never removed",
        "journal/writer.py",
        "                    self.of_slot(records.DELIVERY_GONE, entry)\n",
        "                    pass\n",
    ),
    Fault(
        "an ended session is never removed",
        "journal/rows.py",
        "            journal.gone(records.SESSION_GONE, dirty, at)\n",
        "            dirty[at] = 0\n",
    ),
    # What a start reads
    Fault(
        "a torn record is accepted",
        "journal/reader.py",
        "            if buf[i] != buf[4 + i]:\n                return False\n",
        "            pass\n",
    ),
    Fault(
        "records after the last COMMIT are accepted",
        "journal/reader.py",
        "        if kind == records.COMMIT:\n            end = at",
        "        end = at",
    ),
    Fault(
        "DUP is missing after a reboot",
        "journal/restore_messages.py",
        "            deliveries.flags[slot] |= _DUP",
        "            pass",
    ),
    Fault(
        "packet ids change at a start",
        "journal/restore_messages.py",
        "        if not self.counts(there, at):",
        "        slot = broker.deliveries.count[0]\n        if not self.counts(there, at):",
    ),
    Fault(
        "a packet id is used twice",
        "journal/restore_messages.py",
        "            if deliveries.state[slot] == _FREE:\n                deliveries.next",
        "            if True:\n                deliveries.next",
    ),
    Fault(
        "no will is published after a power cut",
        "journal/start.py",
        "    elif not five or was_connected and not five",
        "    elif False and not five",
    ),
    Fault(
        "wills are published at an orderly stop and again at the start",
        "control.py",
        "        lifecycle.drop_will(broker, session)",
        "        lifecycle.publish_will(broker, session)",
    ),
    Fault(
        "a session's expiry starts again",
        "journal/start.py",
        "        if was_connected:\n            broker.sessions.left[session] = 0",
        "        broker.sessions.left[session] = 0",
    ),
    Fault(
        "options of a subscription are lost",
        "journal/restore_rows.py",
        "            five.options[sub] = options\n",
        "",
    ),
    Fault(
        "messages that were never sent count as sent after a start",
        "journal/restore_rows.py",
        "        return not self.always or self.left.get(slot, at) >= at",
        "        return True",
    ),
    Fault(
        "HEAD says a window of one",
        "journal/compaction.py",
        "    journal.window = min(journal.broker.deliveries.window[0], _NONE)",
        "    journal.window = 1",
    ),
)
