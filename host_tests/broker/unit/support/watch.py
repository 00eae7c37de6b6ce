# watch.py - what a broker writes to a connection, read by a codec that shares nothing with it:
# whole packets, and each PUBLISH a message that somebody has published.
#
#     received: 30 05 00 01 "t" "xx" | 30 0f 00 09 "home/door" "OPEN"
#     forged: the second one is the end of a payload, and nobody has published it
#
# What the broker writes inside WebSocket is not read here, see web_client.py.
from slotmq_tools import codec

# What was published to any broker here: what a journal has kept comes out of another one.
published = set()
payloads = set()  # of these
replies = set()  # topics of answers that a broker itself publishes
_wrong = []
_OF_INTEREST = (codec.CONNECT, codec.PUBLISH)
_STATES = (b"0", b"1")  # what a bridge says of itself
_state = [False]  # has any bridge changed topics?


def begin(broker):
    """Another broker, with other connections; its program's messages count as published."""
    _state[0] = False
    inner = broker.publish

    def published(topic, payload=b"", *more, **named):
        publish(topic, payload)
        return inner(topic, payload, *more, **named)

    broker.publish = published


def publish(topic, payload=b""):
    """Somebody publishes this, by a packet or within the program."""
    topic = topic.encode() if isinstance(topic, str) else bytes(topic)
    payload = payload.encode() if isinstance(payload, str) else bytes(payload)
    published.add((topic, payload))
    payloads.add(payload)
    words = payload.split(b'"') if topic[:8] == b"$SLOTMQ/" else ()
    if b"reply" in words:
        replies.update(words[words.index(b"reply") + 2 :][:1])


def bridge():
    """A bridge publishes what it says of itself, and may change topics."""
    _state[0] = True


def forget():
    """All that was published so far has arrived, or never will."""
    published.clear()
    payloads.clear()


def check():
    """Fail if a connection was given what it may not have."""
    found, _wrong[:] = list(_wrong), []
    assert not found, found


class Way:
    """One direction of a connection."""

    def __init__(self):
        self.rest = b""  # an incomplete packet
        self.aliases = {}

    def packets(self, data, watch, of_client, only=()):
        """only: the types that are decoded; (): all of them."""
        self.rest += bytes(data)
        while self.rest:
            if only and self.rest[0] >> 4 not in only:
                found = codec.extent(self.rest)
                if not found:
                    return
                self.rest = self.rest[found[1] :]
                continue
            level = watch.level
            if self.rest[0] == 0x20 and self.rest[3:4] > b"\0":  # refused, and perhaps its version
                level = 5 if self.rest[1] > 2 else 4
            packet = codec.take(self.rest, level, of_client)
            if packet is None:
                return
            self.rest = self.rest[packet.size :]
            if packet.kind == codec.PUBLISH:
                self._name(packet)
            yield packet

    def _name(self, packet):
        alias = packet.props.get(codec.ALIAS) if packet.props else None
        if alias and not packet.topic:
            codec.check(alias in self.aliases, "an alias that was never given")
            packet.topic = self.aliases[alias]
        elif alias:
            self.aliases[alias] = packet.topic


class Frames:
    """What a client sends over WebSocket: a request, then frames with masks."""

    def __init__(self):
        self.rest = b""
        self.is_open = False
        self.left = self.at = 0  # in the frame that is read
        self.mask = None  # None: of a control frame

    def read(self, data):
        """-> what is MQTT in it."""
        self.rest += bytes(data)
        if not self.is_open:
            _, end, rest = self.rest.partition(b"\r\n\r\n")
            if not end:
                return b""
            self.rest, self.is_open = rest, True
        found = b""
        while self.rest and (self.left or self._begin()):
            n = min(self.left, len(self.rest))
            piece, self.rest = self.rest[:n], self.rest[n:]
            if self.mask:
                found += bytes([c ^ self.mask[self.at + i & 3] for i, c in enumerate(piece)])
            self.at += n
            self.left -= n
        return found

    def _begin(self):
        size = self.rest[1] & 127 if len(self.rest) > 1 else 0
        start = {126: 4, 127: 10}.get(size, 2)
        if len(self.rest) < start + 4:
            return False
        self.left = int.from_bytes(self.rest[2:start], "big") if start > 2 else size
        self.mask = self.rest[start : start + 4] if self.rest[0] & 8 == 0 else None
        self.at = 0
        self.rest = self.rest[start + 4 :]
        return True


class Watch:
    """Both directions of a connection of a broker."""

    def __init__(self):
        self.level = 0  # of CONNECT
        self.is_bridge = False  # is the broker the client?
        self.is_mqtt = None  # not known before the first byte
        self.frames = None  # where the client uses WebSocket
        self.is_first = True  # has it written nothing yet?
        self.is_readable = True  # is all that the broker has read MQTT?
        self.into = Way()
        self.out = Way()
        self.knows_all = True  # who publishes? Not where another program may
        self.packets = None  # if it is a list, what was written is added to it

    def read(self, data):
        """The broker has read these bytes."""
        if self.is_mqtt is None and data:
            self.is_mqtt = data[0] == 0x10
            self.frames = Frames() if data[:1] == b"G" else None
        if self.frames:
            data = self.frames.read(data)
        elif not self.is_mqtt:
            return
        if not self.is_readable:
            return
        try:
            for packet in self.into.packets(data, self, not self.is_bridge, _OF_INTEREST):
                if packet.kind == codec.CONNECT:
                    self.level = self.level or packet.level
                    if packet.will:
                        publish(*packet.will)
                elif packet.kind == codec.PUBLISH:
                    publish(packet.topic, packet.payload)
        except codec.Malformed:
            self.is_readable = False  # the broker ends it

    def written(self, data):
        """The broker has written these bytes."""
        data = bytes(data)
        if self.is_mqtt is None:
            self.is_mqtt = self.is_bridge = data[0] == 0x10
            if self.is_bridge:
                bridge()
        if self.is_first and data[:9] == b"HTTP/1.1 ":
            self.is_mqtt = False
        self.is_first = False
        if not self.is_mqtt:
            return
        try:
            for packet in self.out.packets(data, self, self.is_bridge):
                if self.packets is not None:
                    self.packets.append(packet)
                if packet.kind == codec.CONNECT:
                    self.level = packet.level
                elif packet.kind == codec.PUBLISH and packet.topic[:1] != b"$":
                    self._check(packet.topic, packet.payload)
        except codec.Malformed as error:
            _wrong.append(f"{error} in {data[:60]}")
            self.is_mqtt = False

    def _check(self, topic, payload):
        # Beside a bridge only the payload is known: which topic it gets, unit/bridge/ shows.
        known = (topic, payload) in published or topic in replies
        known = (
            known
            or not self.knows_all
            or (_state[0] and (payload in payloads or payload in _STATES))
        )
        codec.check(known, f"{payload[:40]} to {topic[:40]}, which nobody has published")
