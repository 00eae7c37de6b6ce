# access_case.py - a broker with an acl_file, and clients of 3.1.1 and of 5.0 that have users.
import unittest

import packets
import packets5
import scratch
from fakes import Client, Stream, World
from invariants import broken

from slotmq import Broker, Limits, Settings

LIMITS = {"sessions": 16, "connections": 8, "users": 8, "acl_rules": 64, "acl_bytes": 2048}


class Peer(Client):
    """A client that may have a user name: it remembers what it was sent."""

    def __init__(self, case, name, user, level, clean, will):
        Client.__init__(self, Stream())
        self.case, self.level, self.packet_id = case, level, 0
        self.acks = True  # does it acknowledge?
        self.found = []  # (topic, payload)
        self.released = []  # packet ids of PUBREL
        properties = None if level < 5 else b"" if clean else b"\x11\0\0\x02\x58"
        case.world.listener.waiting.append(self.stream)
        of_will = {"will": will, "will_properties": None if level < 5 else b""} if will else {}
        self.send(
            packets.connect(
                name, clean, username=user, level=level, properties=properties, **of_will
            )
        )
        case.world.turn(3)
        answer = self.take()
        self.code = answer[0][3] if answer else None
        self.present = answer[0][2] if answer else None

    @property
    def properties(self):
        return None if self.level < 5 else b""

    def next_id(self):
        self.packet_id += 1
        return self.packet_id

    def ask(self, packet, turns=4):
        """The packets that answer, but for PUBLISH and what belongs to it."""
        self.send(packet)
        rest = []
        for _ in range(turns):
            self.case.world.turn()
            rest += self.take()
        return rest

    def take(self):
        rest = []
        for data in self.packets():
            if data[0] >> 4 == 3:
                if self.level < 5:
                    topic, payload, qos, packet_id = packets.read_publish(data)
                else:
                    flags, topic, packet_id, _, payload = packets5.read_publish(data)
                    topic, qos = topic.encode(), flags >> 1 & 3
                self.found.append((topic, bytes(payload)))
                if qos and self.acks:
                    first = packets.PUBACK if qos == 1 else packets.PUBREC
                    self.send(packets.ack(first, packet_id))
            elif data[0] == packets.PUBREL and self.acks:
                self.released.append(data[2] << 8 | data[3])
                self.send(packets.ack(packets.PUBCOMP, data[2] << 8 | data[3]))
            elif data[0] == packets.PUBREC:
                rest.append(data)
                if len(data) < 5 or data[4] < 0x80:
                    self.send(packets.ack(packets.PUBREL, data[2] << 8 | data[3]))
            else:
                rest.append(data)
        return rest

    def subscribe(self, topic_filter, qos=0):
        """The granted QoS, or the reason code."""
        packet = packets.subscribe(self.next_id(), topic_filter, qos, self.properties)
        return self.ask(packet)[0][-1]

    def publish(self, topic, payload=b"x", qos=1, retain=False):
        """The reason code of PUBACK or PUBREC; 0 where there is none; None: no answer."""
        packet_id = self.next_id() if qos else 0
        packet = packets.publish(
            topic, payload, qos, packet_id, retain, properties=self.properties
        )
        for data in self.ask(packet):
            if data[0] in (packets.PUBACK, packets.PUBREC):
                return data[4] if len(data) > 4 else 0
        return None

    def got(self):
        """The topics that came since it was asked last."""
        for _ in range(6):
            self.case.world.turn()
            self.take()
        found, self.found = self.found, []
        return [topic for topic, _ in found]

    def is_open(self):
        self.case.world.turn(15, ms=100)  # a connection of 5.0 lingers for a second
        return not self.stream.closed

    def cut(self):
        self.stream.ended = True
        self.case.world.turn(3)

    def leave(self):
        self.send(b"\xe0\0")
        self.case.world.turn(3)


class AccessCase(unittest.TestCase):
    level = 4
    rules = "topic readwrite #\n"
    settings = ()

    def setUp(self):
        self.start()

    def start(self, rules=None, **limits):
        self.path = scratch.write(rules or self.rules)
        values = dict(LIMITS)
        values.update(limits)
        chosen = {"sys_interval": 0, "acl_file": self.path}
        chosen.update(self.settings)
        settings = Settings(**chosen)
        self.broker = Broker(Limits(**values), settings)
        self.world = World(self.broker)
        self.logged = []
        self.broker.log = lambda bit, text: self.logged.append(text)
        self.broker.log_mask = 15

    def tearDown(self):
        self.assertEqual(broken(self.broker), [])

    def come(self, name, user=None, clean=True, will=None, level=None, code=0):
        peer = Peer(self, name, user, level or self.level, clean, will)
        self.assertEqual(peer.code, code)
        return peer

    def change(self, rules):
        """New rules, for everybody who is connected too."""
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(rules.encode())
        self.broker.reload()

    @property
    def denied_code(self):
        """What a PUBACK says where the rules deny: 3.1.1 has no code for it [MQTT-3.3.5-2]."""
        return 0 if self.level < 5 else 0x87

    @property
    def refused_code(self):
        return 0x80 if self.level < 5 else 0x87
