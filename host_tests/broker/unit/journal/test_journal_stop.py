"""An orderly stop with a journal: nothing leaves that it has not kept."""

import packets5
from fakes import World
from journal_case import RESUMED, JournalCase
from memory_medium import MemoryMedium
from packets import PINGREQ, PINGRESP, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore

LOST = 9  # a reason of conns
SUBSCRIBE = 8
GRANTED = b"\x90\x03\0\1\2"


def interrupted(broker, conn, pkt, buf):
    raise KeyboardInterrupt


def reset(_n):
    raise OSError(104)


class Presence:
    """Hooks of a program that tells who has gone."""

    def __init__(self, broker):
        self.broker = broker

    def on_disconnect(self, client_id, reason):
        self.broker.publish(b"gone/" + client_id, b"x", 2, True)


class StopCase(JournalCase):
    ALWAYS = True

    def start(self):
        self.broker = Broker(Limits(), Settings(sys_interval=0))
        self.world = World(self.broker)
        restore(self.broker, self.medium, self.said.append, self.ALWAYS, 1800)

    def again(self):
        """A start some time later, with what is kept."""
        self.medium = MemoryMedium(kept=self.medium.kept)
        self.start()

    def stop_in_the_midst_of_a_packet(self):
        """Ctrl-C while a SUBSCRIBE is handled, behind a PUBLISH of this turn; its publisher."""
        publisher = self.come(packets5.connect("p", clean=False, expiry=60))
        publisher.packets()
        other = self.client("other")
        publisher.send(packets5.publish("r", b"x", 1, 7, retain=True))
        other.send(subscribe(1, "x", 1))
        handlers = list(self.broker.handlers)
        handlers[SUBSCRIBE] = interrupted
        self.broker.handlers = tuple(handlers)
        with self.assertRaises(KeyboardInterrupt):
            self.world.turn()
        self.world.loop.close()
        return publisher


class TestAlways(StopCase):
    def test_what_a_program_publishes_at_the_end_leaves_only_if_it_is_kept(self):
        """Else a packet id would be another message's after the start."""
        self.broker.hooks = Presence(self.broker)
        watcher = self.client("watcher", clean=False)
        self.ask(watcher, subscribe(1, "gone/+", 2), GRANTED)
        self.client("a")
        other = self.client("b", clean=False)
        self.ask(other, subscribe(1, "gone/+", 2), GRANTED)
        other.stream.write_some = reset  # it is found lost while the end of `a` is told
        self.broker.end(1, LOST)
        self.world.loop.close()
        sent = [data for data in watcher.packets() if data[0] & 0xF0 == 0x30]
        self.assertTrue(watcher.stream.closed)
        self.again()
        watcher = self.client("watcher", RESUMED, clean=False)
        self.world.turn(3)
        back = [data for data in watcher.packets() if data[0] & 0xF0 == 0x30]
        self.assertEqual([data[0] & 8 for data in back[: len(sent)]], [8] * len(sent))
        self.assertEqual([data[1:] for data in back[: len(sent)]], [data[1:] for data in sent])

    def test_what_came_in_the_turn_of_ctrl_c_is_kept_or_not_acknowledged(self):
        publisher = self.stop_in_the_midst_of_a_packet()
        self.assertEqual(publisher.packets(), [])
        self.assertTrue(publisher.stream.closed)
        self.again()
        self.assertEqual(self.broker.retained.names.count(), 0)

    def test_who_is_connected_is_told_and_gets_what_is_kept(self):
        five = self.come(packets5.connect("five", clean=False, expiry=60))
        five.packets()
        publisher = self.client("p")
        publisher.send(publish("r", b"x", 1, 7, retain=True) + PINGREQ)
        self.world.turn(2)
        self.world.loop.close()
        self.assertEqual(publisher.packets(), [b"\x40\x02\0\7", PINGRESP])
        self.assertEqual(five.packets(), [b"\xe0\x02\x8b\0"])
        self.again()
        self.assertEqual(self.broker.retained.names.count(), 1)


class TestInterval(StopCase):
    ALWAYS = False

    def test_ctrl_c_in_the_midst_of_a_packet_keeps_all_that_has_waited(self):
        self.stop_in_the_midst_of_a_packet()
        self.again()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_wills_that_a_medium_does_not_take_go_out(self):
        watcher = self.client("watcher", clean=False)
        self.ask(watcher, subscribe(1, "will", 2), GRANTED)
        self.broker.compact()
        self.client("c", will=("will", "dead", 1))
        self.medium.space = 0
        self.world.loop.close()
        self.assertEqual(watcher.packets(), [b"\x32\x0c\0\4will\0\1dead"])


del StopCase, JournalCase
