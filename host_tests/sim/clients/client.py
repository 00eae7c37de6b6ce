# client.py - a client of any version that behaves as real ones do: a window of messages in
# flight, QoS 2 in both directions, all of it stored while it is offline and sent again with DUP.
#
# What it does next is decided by its own random numbers (behaviour.py, by a ClientPlan). It sends
# each packet to its link as bytes for the broker and as a tuple for the model (model/packets.py).
from slotmq_tools import codec
from slotmq_tools.sim.numbers import Numbers

from ..messages import least
from ..model.rights import user_of
from .sender import Sender

_RECEIVE_MAX, _ALIAS_MAX = 0x21, 0x22


class Connecting:
    """The fields of a CONNECT."""

    clean = True
    expiry = 0
    will = None
    will_delay = 0
    user = None
    receive_max = packet_max = 0


class Client(Sender):
    def __init__(self, world, plan):
        self.world = world
        self.plan = plan
        self.numbers = Numbers(world.seed, 60 + plan.index)
        self.link = None
        self.count = 0  # messages that it has made
        self.links = 0
        self.last_id = 0
        self.attempts = 0  # to connect, since the faults are over
        self.pause = 0  # steps until it connects again
        # The client's half of its session
        # [packet id, message, was PUBREC received? None: to be sent again], in order
        self.in_flight = []
        self.received = {}  # QoS 2 packet ids between PUBLISH and PUBREL
        self._fresh()

    def _fresh(self):
        # State of a connection
        self.accepted = False
        self.todo = []  # acknowledgements to send
        self.waiting = {}  # packet ids of SUBSCRIBE and UNSUBSCRIBE
        self.aliases = {}
        self.alias_max = 0
        self.window = self.plan.window
        self.sent_ms = self.world.clock.ms

    # Connections

    def connect(self, clean=None):
        """Open a new connection, whatever has become of the one before."""
        plan = self.plan
        if self.link:
            self.link.vanished = True
        self.links += 1
        if plan.changes_version and not self.in_flight and self.numbers.one_in(3):
            plan.level = 9 - plan.level  # 4 or 5
        self.link = self.world.open(self, plan.index * 1000 + self.links, plan.level)
        self._fresh()
        spec = Connecting()
        spec.user = user_of(plan.name) if self.world.plan.has_rules else None
        spec.clean = self.numbers.percent(plan.is_clean) if clean is None else clean
        if plan.level == 5:
            spec.expiry = 0 if clean else plan.expiry
            spec.receive_max = plan.receive_max
            spec.packet_max = plan.packet_max
        if self.numbers.percent(plan.wills) and clean is None:
            self._make_will(spec)
        if spec.clean:
            self._forget()
        props, will, of_will = self._more(spec)
        data = codec.connect(
            plan.name,
            spec.clean,
            will,
            plan.keep_alive,
            username=spec.user,
            level=plan.level,
            properties=props,
            will_properties=of_will,
        )
        self.send(data, "connect", spec, plan.name)

    def pretend(self):
        """Another user connects with this client id, and goes at once. It may do nothing but use
        c/#."""
        mine, self.link = self.link, self.world.open(self, self.plan.index * 1000 + 999, 4)
        spec = Connecting()
        spec.user = b"stranger"
        spec.clean = self.numbers.one_in(2)
        data = codec.connect(self.plan.name, spec.clean, username=spec.user)
        self.send(data, "connect", spec, self.plan.name)
        self.link.ended = True
        self.link = mine

    def _make_will(self, spec):
        will = spec.will = self.message(self.numbers.choice((0, 1, 2)))
        will.is_will = True
        will.size = max(will.size, 1) and min(will.size, 100)
        most = self.world.broker.settings.message_size_limit
        if most and will.size > most:
            will.size = least(will.number)
        if self.plan.level == 5:
            spec.will_delay = self.numbers.choice((0, 0, 1, 5))

    def _more(self, spec):
        """-> (properties, the will and its properties as the codec takes them)"""
        props = b""
        if spec.expiry:
            props += b"\x11" + codec.number4(spec.expiry)
        if spec.receive_max:
            props += b"\x21" + codec.number(spec.receive_max)
        if spec.packet_max:
            props += b"\x27" + codec.number4(spec.packet_max)
        if self.plan.alias_max:
            props += b"\x22" + codec.number(self.plan.alias_max)
        will = spec.will
        if not will:
            return props, None, b""
        more = will.props
        if spec.will_delay:
            more = b"\x18" + codec.number4(spec.will_delay) + more
        if will.expiry is not None:
            more += b"\x02" + codec.number4(will.expiry)
        return props, (will.topic, will.payload(), will.qos, will.retain), more

    def _forget(self):
        self.world.client_forgot_session(self)
        self.in_flight = []
        self.received = {}

    def leave(self, with_will=False):
        """Send DISCONNECT and close the connection."""
        if self.plan.level == 5 and with_will:
            self.send(codec.disconnect(4), "disconnect", True, None)
        else:
            self.send(codec.disconnect(), "disconnect", False, None)
        self.link.ended = True
        self.gone()

    def gone(self, pause=0):
        """The connection has ended; wait for so many steps before the next one."""
        self.link = None
        self.pause = pause

    # Packets of the broker

    def read(self, most):
        """Take at most so many bytes, and handle the packets that are complete."""
        link = self.link
        for packet in link.arrived(most):
            HANDLERS.get(packet.kind, Client.ignore)(self, packet)
            if self.link is not link:
                return

    def ignore(self, packet):
        pass

    def on_connack(self, packet):
        if packet.code:
            self.link.ended = True
            self.gone(5)
            return
        self.accepted = True
        if packet.props:
            self.window = min(self.window, packet.props.get(_RECEIVE_MAX, 65535))
            self.alias_max = packet.props.get(_ALIAS_MAX, 0)
        if not self._resumes(packet):
            self._forget()
        for row in self.in_flight:
            if row[2]:
                self.send(codec.ack(codec.PUBREL, row[0]), "pubrel", row[0])
            else:
                row[2] = None
            self._send_again()

    def _send_again(self):
        # The window may be smaller than on the connection before: the broker has other limits.
        rest = [row for row in self.in_flight if row[2] is None]
        for row in rest[: max(0, self.window - len(self.in_flight) + len(rest))]:
            row[2] = False
            self.send_message(row[1], row[0], True)

    def _resumes(self, packet):
        # MQTT 3.1 has no Session Present flag; there the client asks the model.
        if self.plan.level > 3:
            return packet.present
        return self.link.resumed

    def on_publish(self, packet):
        packet_id = packet.packet_id
        again = packet.qos == 2 and packet_id in self.received
        session = self.link.session
        # Another message has this packet id, if the session is another one, of which the client
        # has not read the CONNACK. Then it takes this message for the old one.
        is_new = self.world.loss_allowed or self.received.get(packet_id) is not session
        if again and packet.delivery and is_new:
            packet.delivery.required = False
        if not again:
            self.world.received_by_application(self, packet)
        if packet.qos == 1:
            self.todo.append((codec.ack(codec.PUBACK, packet_id), ("puback", packet_id)))
        elif packet.qos == 2:
            self.received[packet_id] = session
            self.todo.append((codec.ack(codec.PUBREC, packet_id), ("pubrec", packet_id, 0)))

    def on_puback(self, packet):
        self._done(packet.packet_id, False)

    def on_pubrec(self, packet):
        for row in self.in_flight:
            if row[0] == packet.packet_id:
                if packet.code >= 0x80:
                    self.in_flight.remove(row)
                    self._send_again()
                    return
                row[2] = True
                break
        packet_id = packet.packet_id
        self.todo.append((codec.ack(codec.PUBREL, packet_id), ("pubrel", packet_id)))

    def on_pubrel(self, packet):
        self.received.pop(packet.packet_id, None)
        packet_id = packet.packet_id
        self.todo.append((codec.ack(codec.PUBCOMP, packet_id), ("pubcomp", packet_id)))

    def on_pubcomp(self, packet):
        self._done(packet.packet_id, True)

    def _done(self, packet_id, released):
        self.in_flight = [
            row for row in self.in_flight if row[0] != packet_id or row[2] != released
        ]
        self._send_again()

    def on_suback(self, packet):
        self.waiting.pop(packet.packet_id, None)

    def on_disconnect(self, packet):
        self.link.ended = True
        self.gone(3)

    def acknowledge(self):
        """Send the acknowledgements."""
        for data, packet in self.todo:
            self.send(data, *packet)
        self.todo = []

    def is_quiet(self):
        """Does it wait for nothing, with nothing to send or to receive?"""
        link = self.link
        if self.todo or self.in_flight or self.waiting or not self.accepted:
            return False
        return not (link.sent or link.packets or link.unparsed or link.pending_answers)


HANDLERS = {
    codec.CONNACK: Client.on_connack,
    codec.PUBLISH: Client.on_publish,
    codec.PUBACK: Client.on_puback,
    codec.PUBREC: Client.on_pubrec,
    codec.PUBREL: Client.on_pubrel,
    codec.PUBCOMP: Client.on_pubcomp,
    codec.SUBACK: Client.on_suback,
    codec.UNSUBACK: Client.on_suback,
    codec.DISCONNECT: Client.on_disconnect,
}
