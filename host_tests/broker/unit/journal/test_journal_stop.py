"""An orderly stop with a journal: only what is stored leaves the broker."""

import packets5
from journal_case import RESUMED, JournalCase
from packets import PINGREQ, PINGRESP, publish, subscribe

LOST = 9  # a reason of conns
SUBSCRIBE = 8


def interrupted(broker, conn, pkt, buf):
    raise KeyboardInterrupt


def reset(_n):
    raise OSError(104)


class Presence:
    """Hooks of a program that publishes who has disconnected."""

    def __init__(self, broker):
        self.broker = broker

    def on_disconnect(self, client_id, reason):
        self.broker.publish(b"gone/" + client_id, b"x", 2, True)


class StopCase(JournalCase):
    def interrupt(self):
        """Ctrl-C while a SUBSCRIBE is handled, after a PUBLISH in this turn; its publisher."""
        publisher = self.client5("p")
        other = self.client("other")
        publisher.send(packets5.publish("r", b"x", 1, 7, retain=True))
        other.send(subscribe(1, "x", 1))
        handlers = list(self.broker.handlers)
        handlers[SUBSCRIBE] = interrupted
        self.broker.handlers = tuple(handlers)
        with self.assertRaises(KeyboardInterrupt):
            self.world.turn()
        self.stop()
        return publisher


class TestAlways(StopCase):
    commits = (True, 1800)

    def test_what_a_program_publishes_at_the_stop_leaves_only_if_it_is_stored(self):
        """Otherwise the next start could give its packet id to another message."""
        self.broker.hooks = Presence(self.broker)
        watcher = self.subscriber("watcher", "gone/+", 2)
        self.client("a")
        other = self.subscriber("b", "gone/+", 2)
        other.stream.write_some = reset  # noticed while the end of `a` is published
        self.broker.end(1, LOST)
        self.stop()
        sent = [data for data in watcher.packets() if data[0] & 0xF0 == 0x30]
        self.assertTrue(watcher.stream.closed)
        watcher = self.client("watcher", RESUMED, clean=False)
        self.world.turn(3)
        back = [data for data in watcher.packets() if data[0] & 0xF0 == 0x30]
        self.assertEqual([data[0] & 8 for data in back[: len(sent)]], [8] * len(sent))
        self.assertEqual([data[1:] for data in back[: len(sent)]], [data[1:] for data in sent])

    def test_a_packet_of_the_turn_that_ctrl_c_interrupts_is_not_acknowledged(self):
        publisher = self.interrupt()
        self.assertEqual(publisher.packets(), [])
        self.assertTrue(publisher.stream.closed)
        self.assertEqual(self.broker.retained.names.count(), 0)

    def test_connected_clients_get_acknowledgements_and_disconnect(self):
        five = self.client5("five")
        publisher = self.client("p")
        publisher.send(publish("r", b"x", 1, 7, retain=True) + PINGREQ)
        self.world.turn(2)
        self.stop()
        self.assertEqual(publisher.packets(), [b"\x40\x02\0\7", PINGRESP])
        self.assertEqual(five.packets(), [b"\xe0\x02\x8b\0"])
        self.assertEqual(self.broker.retained.names.count(), 1)


class TestInterval(StopCase):
    commits = (False, 1800)

    def test_ctrl_c_within_a_packet_stores_what_waited_for_a_commit(self):
        self.interrupt()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_wills_that_a_full_medium_cannot_store_are_published(self):
        watcher = self.subscriber("watcher", "will", 2)
        self.broker.compact()
        self.client("c", will=("will", "dead", 1))
        self.medium.space = 0
        self.world.loop.close()
        self.assertEqual(watcher.packets(), [b"\x32\x0c\0\4will\0\1dead"])
