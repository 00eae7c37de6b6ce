"""More faults for the recorder: time, requests over MQTT, repetitions, and months of recording."""

from host_tests.sim.planted.faults import Fault, Planted

_INTERCEPTOR = "test_interceptor.TestInterceptor"
_TIME = "test_wall_clock.TestWallClock"
_REMOTE = "test_remote.TestRemote"
_NUMBERS = "test_ring.TestLastSequenceNumber"

FAULTS = (
    # Time
    Planted(Fault("the time of an anchor goes back when the ticks begin anew",
        "recorder/wall_clock.py", "    return passed + (max(0, turns) << _WRAP)\n",
        "    return passed\n"), f"{_TIME}.test_for_forty_days_each_segment_has_the_true_time"),
    Planted(Fault("a time that a record cannot say ends the broker", "recorder/wall_clock.py",
        "    if seconds > _U32_MOST or error > _U32_MOST:", "    if False:"),
        f"{_REMOTE}.test_a_time_that_no_record_can_hold_later_is_forgotten"),
    Planted(Fault("ticks begin anew unseen while nothing passes", "recorder/interceptor.py",
        "        if now - self.time_at >= _TIME_EVERY:", "        if False:"),
        f"{_REMOTE}.test_the_time_is_recorded_again_while_no_message_passes"),
    Planted(Fault("a worse time takes the place of a better one", "recorder/wall_clock.py",
        "    if not wall or quality >= wall[0] or error <= _error(wall, _passed(rec, wall)):",
        "    if True:"), f"{_TIME}.test_a_less_exact_time_does_not_replace_a_better_one"),
    # Clients
    Planted(Fault("what a client asks ends the broker", "recorder/remote.py",
        "    except Exception:  # whatever", "    except ValueError:  # whatever"),
        f"{_REMOTE}.test_wrong_payloads_are_ignored"),
    Planted(Fault("a head that cannot be published ends the broker", "recorder/remote.py",
        "    except (OSError, ValueError):", "    except ValueError:"),
        f"{_REMOTE}.test_a_missing_folder_does_not_stop_the_broker"),
    # Messages
    Planted(Fault("a duplicate that the broker suppresses is recorded", "recorder/interceptor.py",
        "            if not result and is_new:", "            if not result:"),
        f"{_INTERCEPTOR}.test_a_qos_2_duplicate_is_not_recorded"),
    Planted(Fault("the fast path takes a duplicate, which is recorded then",
        "fast/path_cpython.py",
        "        if sessions.find_received(session, packet_id) >= 0:\n            return 0\n",
        "        if sessions.find_received(session, packet_id) >= 0:\n            return n\n"),
        f"{_INTERCEPTOR}.test_a_qos_2_duplicate_is_not_recorded"),
    Planted(Fault("what waits is looked at when its time is over", "recorder/interceptor.py",
        "        self.interval = (flush_s - 1) * _EACH\n",
        "        self.interval = flush_s * _EACH\n"),
        f"{_INTERCEPTOR}.test_no_message_waits_longer_than_the_flush_interval"),
    Planted(Fault("numbers of records grow above what a board counts without its heap",
        "recorder/segments.py", "    if o[_SEQ] >= _MOST_SEQ:", "    if False:"),
        f"{_NUMBERS}.test_the_next_segment_has_the_next_boot_number"),
    Planted(Fault("a boot that ends in a full ring is not recorded as lost",
        "recorder/segments.py", "    _forget_written_gaps(rec)\n    if rec.o", "    if rec.o"),
        f"{_NUMBERS}.test_a_full_ring_records_one_gap_for_each_boot_number"),
)  # fmt: skip
