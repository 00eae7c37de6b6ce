"""Sees the packets of a broker, as lib/slotmq/interceptors.py describes it, and loses some.

Owns the messages that were published, a line for each packet in either direction, and the rules
of drop() and refuse(). It stays across power cuts; watch() attaches it to a new broker.
"""

from collections.abc import Callable
from typing import Any

from slotmq.constants import (
    CONNECT_TYPE,
    END,
    EXTRA,
    FLAGS,
    NONE,
    OF_WILL,
    PACKET_ID,
    PAYLOAD,
    PUBLISH_TYPE,
    START,
    SUBSCRIBE_TYPE,
    TOPIC,
    TOPIC_LEN,
    TYPE,
    UNSUBSCRIBE_TYPE,
)
from slotmq.protocol.acks import handle_unexpected
from slotmq.protocol.publish import is_wanted

from .. import codec
from ..errors import shown
from .network import Line
from .seen import Seen
from .texts import Message, matches

_NOT_AUTHORIZED, _BAD_LOGIN = 5, 4  # return codes of CONNACK
_NAMES = (
    *("-", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP"),
    *("SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP"),
    *("DISCONNECT", "AUTH"),
)
_SHORT = 60  # characters of a payload
_FEW = 16  # bytes of another packet


class Spy(Seen):
    def __init__(self) -> None:
        super().__init__()
        self.publisher = "the program"  # or the test, while that publishes
        self.drops: list[list[Any]] = []  # [filter, how many]
        self.refusals: dict[str, list[int]] = {}  # client id: [code, how many]
        self.broker: Any = None

    def watch(self, broker: Any) -> None:
        """See the packets of this broker from now on."""
        self.broker = broker
        broker.handle_fast = lambda _columns, _conn, _buf, at, _end: at  # all go to the handlers
        broker.first_handlers = self._around(broker.first_handlers)
        broker.handlers = self._around(broker.handlers)
        if broker.five:
            broker.five.handlers = self._around(broker.five.handlers)
        if self.refusals:
            broker.may_connect = self._may_connect
        inner = broker.publish

        def publish(topic: Any, payload: Any = b"", qos: int = 0, retain: bool = False) -> bool:
            done: bool = inner(topic, payload, qos, retain)
            more = "" if done else " (not published: a table is full)"
            flags = qos << 1 | bool(retain)
            line = f"PUBLISH {_shown(_bytes(topic), _bytes(payload), flags)}{more}"
            self._note(f"{self.publisher} -> {line}")
            if done:
                self._add(_text(topic), _bytes(payload), qos, retain, None)
            return done

        broker.publish = publish

    def _around(self, handlers: tuple[Any, ...]) -> tuple[Any, ...]:
        made = [
            one if one is handle_unexpected else self._packet(one) for one in handlers[:OF_WILL]
        ]
        if len(handlers) > OF_WILL:
            made.append(self._will(handlers[OF_WILL]))
        return tuple(made)

    # Input

    def _packet(self, inner: Callable[..., int]) -> Callable[..., int]:
        def handle(broker: Any, conn: int, pkt: Any, buf: Any) -> int:
            kind = pkt[TYPE]
            if kind == PUBLISH_TYPE:
                return self._publish(inner, broker, conn, pkt, buf)
            data = _part(buf, pkt[START], pkt[END] - pkt[START])
            self._note(f"{self._who(conn)} -> {_line(data, broker.conns.level[conn] == 5)}")
            stream = broker.conns.stream[conn]
            if kind == CONNECT_TYPE and isinstance(stream, Line):
                stream.is_5 = _level_and_id(data)[0] == 5
            result = inner(broker, conn, pkt, buf)
            session = broker.conns.session[conn]
            if session != NONE and isinstance(stream, Line):
                stream.client = broker.sessions.client_id(session)
            if kind in (CONNECT_TYPE, SUBSCRIBE_TYPE):
                self.changed()
            return result

        return handle

    def _publish(
        self, inner: Callable[..., int], broker: Any, conn: int, pkt: Any, buf: Any
    ) -> int:
        flags = pkt[FLAGS]
        session, is_5 = broker.conns.session[conn], broker.conns.level[conn] == 5
        topic = _part(buf, pkt[TOPIC], pkt[TOPIC_LEN])
        payload = _part(buf, pkt[PAYLOAD], pkt[END] - pkt[PAYLOAD])
        if is_5:
            topic = _topic_5(broker, conn, pkt, buf) or topic
            payload = _without_properties(payload)
        dropped = self._is_dropped(topic.decode(errors="replace"))
        more = " (dropped)" if dropped else ""
        self._note(f"{self._who(conn)} -> PUBLISH {_shown(topic, payload, flags)}{more}")
        if dropped:
            return 0
        is_new = not flags & 4 or broker.sessions.find_received(session, pkt[PACKET_ID]) < 0
        result = inner(broker, conn, pkt, buf)
        wanted = broker.plain and topic[:1] != b"$"
        wanted = wanted or is_wanted(broker, conn, topic, 0, len(topic), len(payload))
        if not result and is_new and wanted:
            client = broker.sessions.client_id(session).decode()
            self._add(_text(topic), payload, flags >> 1 & 3, bool(flags & 1), client)
        return result

    def _will(self, inner: Callable[..., None]) -> Callable[..., None]:
        def publish_will(broker: Any, msg: int, session: int) -> None:
            messages = broker.messages
            data = bytes(messages.arena.text(messages.first[msg]))
            at = 2 + messages.topic_len[msg]
            flags = messages.flags[msg]
            topic = data[2:at].decode()
            at += broker.five.props[msg] if flags & EXTRA else 0
            inner(broker, msg, session)
            client = broker.sessions.client_id(session).decode() if session != NONE else None
            self._note(f"the will of {client} -> PUBLISH {topic}")
            self._add(topic, data[at:], flags >> 1 & 3, bool(flags & 1), client)

        return publish_will

    def _is_dropped(self, topic: str) -> bool:
        for rule in self.drops:
            if topic and matches(rule[0], topic):
                rule[1] -= 1
                if not rule[1]:
                    self.drops.remove(rule)
                return True
        return False

    def refuse(self, client: str, code: int, times: int) -> None:
        """Answer the next CONNECTs of a client with this code."""
        self.refusals[client] = [code, times]
        self.broker.may_connect = self._may_connect

    def _may_connect(self, client_id: Any, user: Any, password: Any) -> int:
        broker = self.broker
        name = bytes(client_id or b"").decode()
        rule = self.refusals.get(name)
        if rule:
            rule[1] -= 1
            if not rule[1]:
                del self.refusals[name]
            return rule[0]
        asked = getattr(broker.hooks, "may_connect", None)
        if asked:
            return int(asked(client_id, user, password))
        if broker.users or broker.settings.allow_anonymous:
            return 0
        return _NOT_AUTHORIZED if user is None else _BAD_LOGIN

    # Output

    def sent(self, line: Line) -> None:
        """Note the whole packets among what was written to a client."""
        while True:
            found = codec.extent(line.sent)
            if not found:
                return
            data = bytes(line.sent[: found[1]])
            del line.sent[: found[1]]
            self._note(f"{_client(line)} <- {_line(data, line.is_5)}")

    def _who(self, conn: int) -> str:
        stream = self.broker.conns.stream[conn]
        return _client(stream) if isinstance(stream, Line) else "the program"

    def _note(self, line: str) -> None:
        self.packets.append(line)

    def _add(self, topic: str, payload: bytes, qos: int, retain: bool, client: str | None) -> None:
        self.add(Message(topic, payload, qos, retain, client))


def _topic_5(broker: Any, conn: int, pkt: Any, buf: Any) -> bytes:
    # The topic name, also where an alias stands for it; b"": the packet is wrong. Here the broker
    # learns the alias, also that of a message which is dropped: the next ones rely on it.
    from slotmq.v5 import properties, publish

    source, values = broker.five.source, broker.five.values
    if properties.scan(buf, pkt[PAYLOAD], pkt[END], publish._IN_PUBLISH, values) < 0:
        return b""
    source.from_packet(buf, pkt[TOPIC], pkt[TOPIC_LEN], buf, pkt[PAYLOAD], pkt[END])
    if publish._find_topic(broker, conn, values):
        return b""
    return _part(source.tbuf, source.topic, source.topic_len)


def _client(line: Line) -> str:
    return shown(line.client) or "a new client"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _part(buf: Any, at: int, n: int) -> bytes:
    return bytes(memoryview(buf)[at : at + n])


def _shown(topic: bytes, payload: bytes, flags: int) -> str:
    more = f" qos {flags >> 1 & 3}" if flags & 6 else ""
    more += (" dup" if flags & 8 else "") + (" retain" if flags & 1 else "")
    return f"{shown(topic)} {shown(payload)[:_SHORT]}{more}"


def _line(data: bytes, is_5: bool = False) -> str:
    kind, at = data[0] >> 4, _body_at(data)
    if kind == CONNECT_TYPE:  # the rest may be a secret
        return f"CONNECT as {shown(_level_and_id(data)[1])!r}"
    if kind in (SUBSCRIBE_TYPE, UNSUBSCRIBE_TYPE):
        names = data[at + 2 :]
        return f"{_NAMES[kind]} {_filters(_without_properties(names) if is_5 else names, kind)}"
    if kind != PUBLISH_TYPE:
        rest = data[at : at + _FEW].hex(" ") + (" ..." if len(data) > at + _FEW else "")
        return f"{_NAMES[kind]} {rest}".rstrip()
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    payload = data[end + (2 if data[0] & 6 else 0) :]
    payload = _without_properties(payload) if is_5 else payload
    return f"PUBLISH {_shown(data[at + 2 : end], payload, data[0] & 15)}"


def _filters(data: bytes, kind: int) -> str:
    found = []
    while data:
        end = 2 + int.from_bytes(data[:2], "big")
        qos = f" qos {data[end] & 3}" if kind == SUBSCRIBE_TYPE and end < len(data) else ""
        found.append(shown(data[2:end]) + qos)
        data = data[end + (kind == SUBSCRIBE_TYPE) :]
    return ", ".join(found)


def _body_at(data: bytes) -> int:
    found = codec.extent(data)
    return found[0] if found else len(data)


def _without_properties(data: bytes) -> bytes:
    try:
        n, at = codec.varint(data, 0) or (0, len(data))
    except codec.Malformed:
        return b""
    return data[at + n :]


def _level_and_id(data: bytes) -> tuple[int, bytes]:
    at = _body_at(data)
    at += 2 + int.from_bytes(data[at : at + 2], "big")
    level = data[at] if at < len(data) else 0
    rest = data[at + 4 :]
    rest = _without_properties(rest) if level == 5 else rest
    return level, rest[2 : 2 + int.from_bytes(rest[:2], "big")]
