# bridge_case.py - a broker with bridges to other brokers that are fakes: the test is the other
# broker, on the other end of a fake stream.
import watch
from broker_case import BrokerCase
from fakes import Client, Stream
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, packet, read_publish, subscribe

from slotmq.bridge import link
from slotmq.embed import publishing

ACCEPTED, RESUMED = b"\x20\x02\0\0", b"\x20\x02\1\0"
REMOTE = "192.0.2.1:1883"


def accept(properties=b"", present=0, code=0):
    """CONNACK of version 5."""
    return packet(0x20, bytes((present, code, len(properties))) + properties)


def as_bridge(data, level=0x84):
    """CONNECT of mosquitto's bridges."""
    at = data.index(b"MQTT") + 4
    return data[:at] + bytes((level,)) + data[at + 1 :]


def payloads(client):
    """(topic, payload) of each PUBLISH that has come."""
    return [read_publish(data)[:2] for data in client.packets() if data[0] >> 4 == 3]


class Network:
    """What link.py asks to connect: `addresses` were dialled; who dials a port of `down` fails."""

    def __init__(self):
        self.addresses = []
        self.streams = []
        self.down = set()
        self.noise = 0

    def install(self):
        link.find, link.dial, link.noise = self.find, self.dial, lambda: self.noise

    def find(self, host, port, _now):
        return [(host, port)]

    def dial(self, found, bind, nodelay):
        self.addresses.append(found)
        self.bind = bind
        if found[1] in self.down:
            raise OSError(111)
        self.streams.append(Stream())
        return self.streams[-1], found


class Remote(Client):
    """The other broker on one connection; as a receiver it does what the standard says."""

    def __init__(self, stream, held=None):
        super().__init__(stream)
        self.held = set() if held is None else held  # QoS 2 ids between PUBLISH and PUBREL

    def receive(self):
        """Take what has come and acknowledge it; -> the other packets."""
        rest = []
        for data in self.packets():
            if data[0] >> 4 == 3:
                topic, payload, qos, packet_id = read_publish(data)
                if packet_id not in self.held:
                    self.messages.append((topic, payload, qos))
                if qos:
                    self.send(ack(PUBACK if qos == 1 else PUBREC, packet_id))
                if qos == 2:
                    self.held.add(packet_id)
            elif data[0] == PUBREL:
                self.held.discard(data[2] << 8 | data[3])
                self.send(ack(PUBCOMP, data[2] << 8 | data[3]))
            elif data[0] == PUBREC:
                self.send(ack(PUBREL, data[2] << 8 | data[3]))
            else:
                rest.append(data)
        return rest


class BridgeCase(BrokerCase):
    def start(self, limits=None, **settings):
        super().start(limits, **settings)
        self.network = Network()
        self.network.install()
        self.lines = []  # warnings in the log, or what log_mask says
        self.broker.log = lambda bit, text: self.lines.append(text)
        self.broker.log_mask = 2

    def each(self, *cases):
        """Each of these cases with a broker of its own, which start() makes."""
        for case in cases:
            yield case
            self.tearDown()
            self.start()

    def tearDown(self):
        for each in self.broker.bridges.every if self.broker.bridges else ():
            self.broker.end(each.conn, 9)
            self.broker.loop.finish_turn = self.broker.bridges.inner_finish_turn
            self.world.turn()
            if each.options.notifications:
                publishing.send(self.broker, each.state_topic.encode(), b"", 0, True)
        if self.broker.bridges:
            self.broker.bridges = None
        super().tearDown()

    def bridge(self, *topics, addresses=(REMOTE,), **options):
        quiet = {"notifications": False, "bridge_attempt_unsubscribe": False}
        options = {"remote_clientid": "edge"} | quiet | options
        watch.bridge()
        self.one = self.broker.bridge("up", addresses, topics, **options)
        self.world.turn(2)
        return self.one

    def bridge5(self, *topics, **options):
        return self.bridge(*topics, bridge_protocol_version="mqttv50", **options)

    def reader(self, *filters, qos=0):
        """A client that has subscribed to these."""
        client = self.world.client("c")
        for name in filters:
            client.send(subscribe(1, name, qos))
        self.world.turn(3)
        client.packets()
        return client

    def level(self):
        """The protocol level of the last CONNECT."""
        return self.connect[0][
            self.connect[0].index(b"MQ") + (4 if b"MQTT" in self.connect[0] else 6)
        ]

    def remote(self, answer=ACCEPTED, held=None):
        """The other end of the newest connection, which has answered CONNECT."""
        remote = Remote(self.network.streams[-1], held)
        self.world.turn()
        self.connect = remote.packets()
        remote.send(answer)
        self.world.turn(3)
        return remote

    def dialled(self):
        """Wait for the next connection."""
        count = len(self.network.streams)
        while len(self.network.streams) == count:
            self.wait(1)

    def subacks(self, remote, count=1):
        """Grant what the bridge subscribes to; -> the SUBSCRIBEs."""
        found = [data for data in remote.packets() if data[0] == 0x82]
        self.assertEqual(len(found), count)
        for data in found:
            remote.send(b"\x90\x03" + data[2:4] + data[-1:])
        self.world.turn(2)
        return found

    def lose(self, remote, answer=RESUMED):
        """The connection is lost, and comes back; -> its other end."""
        remote.leave()
        self.dialled()
        return self.remote(answer, remote.held)

    def deliver(self, remote, turns=6):
        """The other broker takes and acknowledges what comes."""
        for _ in range(turns):
            remote.receive()
            self.world.turn()
