"""MQTT 5.0 through the real loop: QoS 0 without a slot."""

import packets5
from broker_case import BrokerCase
from fakes import anything
from packets import (
    connect,
    publish,
    subscribe,
    text,
)

from slotmq import Limits

DISCONNECT = b"\xe0\0"
METHOD = b"\x15" + text("any")
FOREVER = b"\xff\xff\xff\xff"


class TestNoSlot(BrokerCase):
    """QoS 0 asks for no message slot where the sockets take it."""

    def test_a_long_message_with_a_full_table_reaches_every_version(self):
        self.start(Limits(messages=4, message_bytes=4096))
        older = self.come(connect("older") + subscribe(1, "t", 0))
        newer = self.come(packets5.connect("newer") + packets5.subscribe(1, "t", 0))
        sender = self.come(packets5.connect("sender"))
        for n in range(4):
            sender.send(packets5.publish(f"kept/{n}", b"x", retain=True))
        self.world.turn(3)
        self.assertEqual(self.broker.messages.count[0], 4)
        for client in (older, newer):
            client.packets()
            client.stream.write_some = anything  # straight from where it was read
        size = 3 * self.broker.limits.tx_bytes
        for said in (
            packets5.publish("t", b"y" * size),
            packets5.publish("t", b"y" * size, properties=b"\x26" + text("a") + text("b")),
        ):
            sender.send(said)
            self.world.turn(9)
            self.assertEqual(newer.packets(), [said])
            self.assertEqual(older.packets(), [publish("t", b"y" * size)])
        for n in range(4):
            sender.send(packets5.publish(f"kept/{n}", b"", retain=True))
        self.world.turn(3)
