# sender.py - the sending half of a client: PUBLISH with window and topic aliases, SUBSCRIBE,
# UNSUBSCRIBE, PINGREQ.
from slotmq_tools import codec

from ..messages import Message, least


class Sender:
    def send(self, data, *packet):
        """Send a packet: bytes for the broker, a tuple for the model."""
        self.link.send(data, packet)
        self.sent_ms = self.world.clock.ms

    def is_plain(self):
        """Shall the next packet suit the fast path?"""
        return self.world.plan.is_plain and not self.numbers.one_in(5)

    def message(self, qos):
        """Make a new message."""
        numbers = self.numbers
        plan = self.plan
        self.count += 1
        number = self.count * 16 + plan.index
        retain = 1 if numbers.percent(plan.retains) else 0
        size = numbers.choice(plan.sizes)
        if retain and numbers.one_in(4):
            size = 0
        size = max(size, least(number)) if size else 0
        topic = numbers.choice(plan.topics)
        msg = Message(number, topic, size, min(qos, self.world.broker.max_qos), retain, plan.name)
        if plan.level == 5:
            has_some = numbers.one_in(4) and not self.is_plain()
            if has_some or (self.world.plan.is_plain and number % 3 == 0):
                user_property = codec.string(b"n") + codec.string(b"%d" % number)
                msg.props = b"\x01\x01" + b"\x26" + user_property
            if size and numbers.percent(plan.expires):  # only the topic identifies an empty one
                msg.expiry = numbers.choice((1, 3, 100))
        return msg

    def publish(self):
        qos = self.numbers.choice(self.plan.qos)
        if qos and len(self.in_flight) >= self.window:
            return
        msg = self.message(qos)
        packet_id = 0
        if msg.qos:
            packet_id = self.new_id()
            self.in_flight.append([packet_id, msg, False])
        self.send_message(msg, packet_id, False)

    def send_message(self, msg, packet_id, dup):
        topic = msg.topic
        props = msg.props
        if msg.expiry is not None:
            props = b"\x02" + codec.number4(msg.expiry) + props
        if self.plan.level == 5 and self.alias_max and not dup:
            alias = self.aliases.get(topic)
            if alias and self.numbers.one_in(2):
                topic = b""
            elif not alias and len(self.aliases) < self.alias_max:
                alias = self.aliases[topic] = len(self.aliases) + 1
            if alias:
                props += b"\x23" + codec.number(alias)
        props = codec.of(self.plan.level, props)
        data = codec.publish(topic, msg.payload(), msg.qos, packet_id, msg.retain, dup, props)
        self.send(data, "publish", msg, msg.qos, packet_id, dup)

    def new_id(self):
        used = [row[0] for row in self.in_flight]
        while True:
            self.last_id = self.last_id % 65535 + 1
            if self.last_id not in used and self.last_id not in self.waiting:
                return self.last_id

    def subscribe(self, filters=None):
        numbers = self.numbers
        if filters is None:
            filters = [self._filter() for _ in range(numbers.choice((1, 1, 1, 2)))]
        packet_id = self.new_id()
        self.waiting[packet_id] = True
        identifier = 0
        props = b""
        has_one = self.plan.level == 5 and numbers.one_in(3) and not self.is_plain()
        may_have = self.world.plan.with_options and self.plan.level == 5
        if has_one or (may_have and numbers.one_in(2)):
            identifier = numbers.between(1, 200)
            props = b"\x0b" + codec.length(identifier)
        named = [(_named(text, group), options) for text, group, options in filters]
        data = codec.subscribe(packet_id, *named, properties=codec.of(self.plan.level, props))
        self.send(data, "subscribe", packet_id, filters, identifier)

    def _filter(self):
        numbers = self.numbers
        text = numbers.choice(self.plan.filters)
        options = numbers.below(3)
        if self.world.plan.with_options:
            options = max(1, options)
        group = None
        if self.plan.level == 5:
            if numbers.percent(self.plan.sharing):
                group = numbers.choice((b"g", b"h"))
                text = numbers.choice((text, b"a/#"))
                if self.world.plan.with_options:  # no session is a member twice
                    group, text = b"g", b"a/#"
            options |= numbers.choice((0, 0, 8)) | numbers.choice((0, 0, 0x10, 0x20))
            options |= 4 if numbers.one_in(5) and group is None and not self.is_plain() else 0
        return text, group, options

    def unsubscribe(self):
        text, group, _ = self._filter()
        packet_id = self.new_id()
        self.waiting[packet_id] = True
        props = codec.of(self.plan.level)
        data = codec.unsubscribe(packet_id, _named(text, group), properties=props)
        self.send(data, "unsubscribe", packet_id, [(text, group)])

    def ping(self):
        self.send(codec.PING, "ping")


def _named(text, group):
    return text if group is None else b"$share/" + group + b"/" + text
