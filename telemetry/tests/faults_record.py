"""Faults to plant in the recorder, and for each the unit test that must find it."""

from host_tests.sim.planted.faults import Fault, Planted

_INTERCEPTOR = "test_interceptor.TestInterceptor"
_RING = "test_ring.TestRing"
_DISK = "test_disk_errors.TestDiskErrors"
_BOOTS = "test_boots.TestBoots"
_HEAD = "test_ring_head.TestRingHead"
_IN_ORDER = f"{_INTERCEPTOR}.test_every_message_is_recorded_once_and_in_order"
_EACH_SEQ = f"{_DISK}.test_wherever_a_write_fails_each_seq_is_found_once"


FAULTS = (
    # Records
    Planted(Fault("a message that the fast way leaves is lost silently", "recorder/interceptor.py",
        "                self._rest(conn, buf, at, stop)", "                pass"), _IN_ORDER),
    Planted(Fault("a record that cannot be written takes no seq", "recorder/writer.py",
        "        o[_SEQ] += missed\n", ""), _EACH_SEQ),
    Planted(Fault("a definition that a new segment takes too is not reckoned with",
        "recorder/writer.py", "            total += _BEFORE + self.topics.length[topic]\n",
        "            new = self.defined[0][topic] != self.o[_THIS]\n"
        "            total += new * (_BEFORE + self.topics.length[topic])\n"),
        f"{_RING}.test_a_segment_is_never_longer_than_its_size"),
    Planted(Fault("a write that fails behind the header takes two", "recorder/writer.py",
        "                missed = 0  # its seq is taken\n", ""),
        f"{_DISK}.test_a_write_that_fails_within_a_record_loses_one_seq"),
    Planted(Fault("the CRC is of the header only, on the fast way", "fast/record_cpython.py",
        "crc32(out[fill + 4 : fill + n])", "crc32(out[fill + 4 : fill + _BEFORE])"), _IN_ORDER),
    Planted(Fault("the CRC is of the header only, on the long way", "fast/record_cpython.py",
        "crc32(memoryview(b)[at : at + n], crc)", "crc"),
        f"{_RING}.test_messages_longer_than_the_buffer"),
    Planted(Fault("a block is lost where two are in the buffer", "recorder/writer.py",
        "        while o[_FILL] >= block:", "        if o[_FILL] >= block:"),
        f"{_RING}.test_a_buffer_with_more_than_two_blocks_is_written"),
    # Segments and starts
    Planted(Fault("a definition is missing in a new segment", "recorder/segments.py",
        "    o[_THIS] += 1  # the segment has the text of no id\n", ""), _IN_ORDER),
    Planted(Fault("boot, and with it seq, is used again by the next start", "recorder/start.py",
        "    boot = max(boot, newest[0] if newest else 0) + 1\n",
        "    boot = max(boot, newest[0] if newest else 0) or 1\n"),
        f"{_BOOTS}.test_each_start_has_the_next_boot_number_and_a_new_segment"),
    Planted(Fault("the boot of the newest segment is not looked at", "recorder/start.py",
        "max(boot, newest[0] if newest else 0)", "boot"),
        f"{_BOOTS}.test_without_the_ring_file_the_newest_segment_tells_the_boot_number"),
    Planted(Fault("a start writes over the newest segment", "recorder/segments.py",
        "files.begin(rec, max(rec.newest, rec.segment) + 1)",
        "files.begin(rec, max(rec.newest, rec.segment, 0))"),
        f"{_RING}.test_a_power_cut_at_every_byte_leaves_a_prefix"),
    Planted(Fault("what is torn is written on", "recorder/writer.py",
        "        if not self.is_open:\n            return False  # behind what is torn",
        "        if False:\n            return False  # behind what is torn"),
        f"{_DISK}.test_nothing_is_written_behind_a_torn_record"),
    Planted(Fault("the oldest segment is not dropped", "recorder/segments.py",
        "        while len(there) >= rec.most:", "        while len(there) > rec.most:"),
        f"{_RING}.test_the_oldest_segment_is_removed_and_recorded_as_a_gap"),
    # Losses
    Planted(Fault("no gap says that a segment was overwritten", "recorder/segments.py",
        "            rec.gaps.append(_overwritten(rec, there))",
        "            _overwritten(rec, there)"),
        f"{_RING}.test_the_oldest_segment_is_removed_and_recorded_as_a_gap"),
    Planted(Fault("no gap says that a write failed", "recorder/writer.py",
        "            self.gap = FAILED\n", "            self.gap = 0\n"), _EACH_SEQ),
    Planted(Fault("a full ring does not say that it stops", "recorder/segments.py",
        "        gap(rec, STOPPED, rec.boot, seq + 1, _TO_THE_END, _NO_SEGMENT)\n",
        "        _ = seq\n"), f"{_RING}.test_a_full_ring_that_stops_ends_with_a_gap"),
    Planted(Fault("a loss is recorded again in each segment", "recorder/segments.py",
        "        rec.gaps = []\n", ""),
        f"{_RING}.test_each_removed_segment_is_recorded_as_one_gap"),
    Planted(Fault("a segment that took nothing costs an older one", "recorder/segments.py",
        "            _clear_away(rec, there)\n", "            pass\n"),
        f"{_DISK}.test_a_disk_that_fails_for_long_loses_no_older_segment_and_needs_no_memory"),
    # Time
    Planted(Fault("an anchor's quality is wrong", "recorder/wall_clock.py",
        "    rec.put(_ANCHOR | quality << 8, _NONE, pack",
        "    rec.put(_ANCHOR | 1 << 8, _NONE, pack"),
        f"{_INTERCEPTOR}.test_the_time_that_a_client_publishes_is_an_anchor_in_each_segment"),
    Planted(Fault("the error bound of an anchor does not grow", "recorder/wall_clock.py",
        "wall[4] + passed // 10000", "wall[4]"),
        f"{_INTERCEPTOR}.test_the_time_that_a_client_publishes_is_an_anchor_in_each_segment"),
    Planted(Fault("anybody may tell the time", "recorder/interceptor.py",
        "        if self.remote and n > 8 and", "        if n > 8 and"),
        f"{_INTERCEPTOR}.test_the_time_that_a_client_publishes_is_an_anchor_in_each_segment"),
    # Messages
    Planted(Fault("a will is no message", "interceptors.py",
        "one.publish, _PUBLISH_TYPE)\n"
        "    broker.handlers = _with(handlers, one.publish_will, _OF_WILL)\n",
        "one.publish, _PUBLISH_TYPE)\n    broker.handlers = handlers\n"),
        f"{_INTERCEPTOR}.test_a_will_is_recorded"),
    Planted(Fault("a will has its properties in its payload", "recorder/segments.py",
        "record.broker.five.props[msg] if flags & _EXTRA else 0", "0"),
        f"{_INTERCEPTOR}.test_a_will_is_recorded"),
    Planted(Fault("a hook is asked twice", "recorder/interceptor.py",
        "        if self.answer is None:", "        if True:"),
        f"{_INTERCEPTOR}.test_a_hook_is_asked_once_for_each_message"),
    Planted(Fault("a hook's answer is kept for the next message", "recorder/interceptor.py",
        "            self.answer = None\n            broker", "            broker"),
        f"{_INTERCEPTOR}.test_a_hook_is_asked_for_each_message_of_a_run"),
    Planted(Fault("an origin is looked for within other properties", "recorder/interceptor.py",
        "            at += 1 if n == _FORMAT else 2 + (buf[at] << 8 | buf[at + 1])\n",
        "            pass\n"),
        f"{_INTERCEPTOR}.test_the_bytes_of_an_origin_within_another_property_are_ignored"),
    # The head of the ring
    Planted(Fault("the head goes into the journal with each flush", "recorder/remote.py",
        "        retained.dirty[slot] = 0\n", "        pass\n"),
        f"{_HEAD}.test_a_new_head_causes_no_commit"),
    Planted(Fault("a head that a compaction has taken is never taken out", "recorder/remote.py",
        "        broker.journal.commit()\n", "        pass\n"),
        f"{_HEAD}.test_a_head_that_a_compaction_stored_is_deleted_once"),
)  # fmt: skip
