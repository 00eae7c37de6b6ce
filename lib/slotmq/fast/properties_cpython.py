# properties_cpython.py - the contract of fast/properties_viper.py on CPython. Owns a cache of
# property sections that are right, which is cleared when it is full.
from slotmq.fast.bytes_cpython import utf8_ok
from slotmq.fast.deliveries_cpython import fan, have_space
from slotmq.fast.messages_cpython import put_ack, store, unref
from slotmq.fast.path_cpython import fast_path as without_properties
from slotmq.fast.routes_cpython import place

_NONE = 0xFFFF
_QUEUED = 0
_RELEASED = 3
_EXTRA = 8
_FLAGS = 1
_END = 4
_PACKET_ID = 6
_TOPIC = 7
_TOPIC_LEN = 8
_PAYLOAD = 9
_PACKET_MAX = 10
_PACKETS_IN = 0
_PACKETS_OUT = 1
_PUBLISH_IN = 2
_BYTES_IN = 5
_PUBLISHES = 1
_SECTIONS = 256  # that the cache remembers
_CACHED = 64  # bytes of a section that it may have
_TEXTS = (3, 8, 9)


class Quick:
    def __init__(self, broker):
        self.broker = broker
        self.sections = {}  # of packets: what _scan() says of them

    def fast_path(self, broker, conn, buf, at, end):
        if type(buf) is not bytes:
            buf = bytes(memoryview(buf)[:end])
        goes_on = False  # has _publish() taken the last packet?
        first = at
        count = 0
        while at + 1 < end:
            if not goes_on or buf[at] >> 4 != 3:
                goes_on = False
                first += (stop := without_properties(broker, conn, buf, at, end)) - at
                at = stop
                if at + 1 >= end or buf[at] >> 4 != 3:
                    break
            n = self._publish(broker, conn, buf, at, end)
            if n:
                goes_on = True
                at += n
                count += 1
            elif goes_on:
                goes_on = False
            else:
                break
        stats = broker.stats
        stats[_PUBLISH_IN] += count
        stats[_PACKETS_IN] += count
        stats[_BYTES_IN] += at - first
        return at

    def _publish(self, broker, conn, buf, start, end):
        """The PUBLISH at buf[start]; -> its length, or 0."""
        flags = buf[start] & 15
        length = buf[start + 1]
        at = start + 2
        if flags & 9 or flags == 6 or at >= end:
            return 0
        if length > 127:
            length = length & 127 | buf[at] << 7
            at += 1
            if length > 16383 or length < 128:
                return 0
        stop = at + length
        if stop > end or length < 3 or stop - start > broker.pkt[_PACKET_MAX]:
            return 0
        size = buf[at] << 8 | buf[at + 1]
        at += 2
        to = at + size
        if to > stop or size and buf[at] == 36:
            return 0
        topic = buf[at:to]
        packet_id = 0
        if flags:
            to += 2
            if to > stop:
                return 0
            packet_id = buf[to - 2] << 8 | buf[to - 1]
        alias = 0
        section = b""
        if broker.conns.level[conn] == 5:
            n, to = _section_length(buf, to, stop)
            if n < 0 or to + n > stop:
                return 0
            if n:
                found = self._section(buf[to : to + n])
                if not found:
                    return 0
                alias, section, expires = found
                if flags and expires:
                    return 0
                to += n
                if alias:
                    topic = _topic_of(broker.five.aliases, conn, alias, topic)
            elif flags:
                return 0
        elif flags:
            return 0
        routes = broker.subscriptions.routes
        slot_of = routes.senders.of(conn) if routes.senders else routes.slot_of
        slot = slot_of.get(topic, -1)
        if slot < 0:
            return 0
        if flags:
            pkt = broker.pkt
            pkt[_FLAGS] = flags
            pkt[_PACKET_ID] = packet_id
            done = _accept(broker, conn, slot, topic, section, buf[to:stop])
        else:
            whole = b"" if alias else buf[start:stop]
            done = _forward(broker, conn, slot, topic, section, buf[to:stop], whole)
        return stop - start if done else 0

    def _section(self, data):
        """What _scan() says of a section, which may be known."""
        found = self.sections.get(data)
        if not found and (found := _scan(data)) and len(data) <= _CACHED:
            if len(self.sections) == _SECTIONS:
                self.sections.clear()
            self.sections[data] = found
        return found

    def send(self, columns, session, conn, most):
        """send() of deliveries_viper.py for a client of version 5, with properties and aliases."""
        d, s, m, c = columns
        entry = s.cursor[session]
        while entry != _NONE:
            flags = d.flags[entry]
            state = d.state[entry]
            if state == _RELEASED or not flags & 6:
                return 2
            if s.inflight[session] >= most:
                if state == _QUEUED:
                    return 0
                if s.inflight[session] > most:
                    return 2
            packet = b"" if flags >> 6 else self._delivery(m, conn, d.msg[entry], flags, entry + 1)
            if not packet:
                return 2
            at = c.tx_end[conn]
            end = at + len(packet)
            if end > c.tx_limit[conn]:
                return 1
            if not c.out[conn]:
                c.mark_dirty(conn)
            c.tx[at:end] = packet
            c.tx_end[conn] = end
            c.counts[_PUBLISHES] += 1
            if state == _QUEUED:
                d.state[entry] = flags >> 1 & 3
                d.flags[entry] = flags | 8
                s.queued[session] -= 1
                s.inflight[session] += 1
            entry = d.next[entry]
            s.cursor[session] = entry
        return 0

    def _delivery(self, m, conn, msg, flags, packet_id):
        """The PUBLISH of a delivery; empty: it needs other code."""
        five = self.broker.five
        section = 0
        if m.flags[msg] & _EXTRA:
            if five.expires[msg]:
                return b""
            section = five.props[msg]
            if section + 3 >> 14:
                return b""
        text = m.arena.text(m.first[msg])
        split = m.topic_len[msg] + 2
        alias = 0
        if not flags & 4 and five.aliases.offered[conn]:
            alias = _alias_for(five.aliases, conn, bytes(text[2:split]))
            if alias < 0:
                return b""
        head = packet_id.to_bytes(2, "big")
        if alias:
            head = b"\0\0" + head + _length(section + 3) + b"\x23" + alias.to_bytes(2, "big")
        else:
            head = bytes(text[:split]) + head + _length(section)
        packet = _packet(flags & 15 | 0x30, head + text[split:])
        return b"" if 0 < five.packet_max[conn] < len(packet) else packet


def _section_length(buf, at, stop):
    """(the length of the property section at buf[at], where it begins); -1: malformed or long."""
    if at >= stop:
        return -1, at
    n = buf[at]
    at += 1
    if n > 127:
        if at >= stop:
            return -1, at
        n = n & 127 | buf[at] << 7
        at += 1
        if n > 16383 or n < 128:
            return -1, at
    return n, at


def _scan(data):
    """(alias or 0, the section without it, does it expire), or None: see scan() of
    properties_viper.py."""
    alias = 0
    rest = data
    seen = set()
    stop = len(data)
    expires = data[0] == 2
    if expires and (stop < 5 or data[1:5] == b"\0\0\0\0"):
        return None
    at = 5 if expires else 0
    while at < stop:
        name = data[at]
        at += 1
        if name != 0x26:
            if name in seen:
                return None
            seen.add(name)
        if name == 0x23:
            alias = int.from_bytes(data[at : at + 2], "big")
            at += 2
            if not alias or at > stop:
                return None
            rest = data[: at - 3] + data[at:]
        elif name == 1:
            if at >= stop or data[at] > 1:
                return None
            at += 1
        elif name == 0x26 or name in _TEXTS:
            for _ in range(2 if name == 0x26 else 1):
                n = int.from_bytes(data[at : at + 2], "big")
                at += 2
                if at + n > stop or name != 9 and not utf8_ok(data, at, n, name == 8):
                    return None
                at += n
        else:
            return None
    return alias, rest, expires


def _topic_of(aliases, conn, alias, topic):
    """The topic of a client's alias; None: it has none, or not this one."""
    if alias > aliases.allowed[conn]:
        return None
    at = conn * aliases.most + alias - 1
    if not aliases.inward_len[at]:
        return None
    found = bytes(aliases.arena.text(aliases.inward[at]))
    return found if not topic or topic == found else None


def _alias_for(aliases, conn, topic):
    """The alias that the client knows for a topic; 0: none, -1: it would get a new one."""
    n = len(topic)
    if n < 4:
        return 0
    base = conn * aliases.most
    for at in range(base, base + aliases.offered[conn]):
        size = aliases.outward_len[at]
        if not size:
            return -1
        if size == n and aliases.arena.text(aliases.outward[at]) == topic:
            return at - base + 1
    return 0


def _length(n):
    return bytes((n & 127 | 128, n >> 7)) if n > 127 else bytes((n,))


def _packet(first, body):
    """The packet with that body; empty: it is too long."""
    n = len(body)
    return b"" if n >> 14 else bytes((first,)) + _length(n) + body


def _accept(broker, conn, slot, topic, section, payload):
    """Store, queue and acknowledge a QoS 1 or 2 PUBLISH, which pkt has; False: not here."""
    pkt = broker.pkt
    tables = broker.tables
    packet_id = pkt[_PACKET_ID]
    qos = pkt[_FLAGS] >> 1
    sessions = broker.sessions
    subs = broker.subscriptions
    first = subs.routes.first[slot]
    last = subs.routes.end[slot]
    session = broker.conns.session[conn]
    if not packet_id or first == last:
        return False
    if qos == 2:
        if sessions.find_received(session, packet_id) >= 0:
            return False
        if sessions.id_count[session] == sessions.received or sessions.id_msg is not None:
            return False
    n = len(topic)
    data = n.to_bytes(2, "big") + topic + section + payload
    if not have_space(tables, subs.pool, first, last, len(data)):
        return False
    msg = store(tables, data, 2, n, 2 + n, len(data) - 2 - n, qos << 1 | (section and _EXTRA or 0))
    if msg == _NONE:
        return False
    if section:
        broker.five.props[msg] = len(section)
        broker.five.expires[msg] = 0
    fan(tables, subs.pool, first, last, msg, qos)
    unref(tables, msg)
    if qos == 2:
        sessions.add_received(session, packet_id)
    put_ack(tables, conn, 0x30 + (qos << 4), packet_id)
    broker.stats[_PACKETS_OUT] += 1
    return True


def _forward(broker, sender, slot, topic, section, payload, whole):
    """Send a QoS 0 PUBLISH to all its receivers; whole: what version 5 without aliases gets, if
    that came so. False: not here."""
    conns = broker.conns
    five = broker.five
    aliases = five.aliases
    routes = broker.subscriptions.routes
    first = routes.first[slot]
    last = routes.end[slot]
    entries, conn_of, _, tx_end, tx_limit, _, _, _ = conns.columns
    name = len(topic).to_bytes(2, "big") + topic
    of_3 = b""
    of_5 = whole if conns.level[sender] == 5 else b""
    packets = []
    for i in range(first, last):
        conn = conn_of[entries[i] >> 2]
        if conn == _NONE:
            packets.append(b"")
            continue
        if conn == sender or conns.level[conn] > 5:
            return False
        if conns.level[conn] != 5:
            packet = of_3 = of_3 or _packet(0x30, name + payload)
        else:
            alias = _alias_for(aliases, conn, topic) if aliases.offered[conn] else 0
            if alias < 0:
                return False
            if alias:
                own = _length(len(section) + 3) + b"\x23" + alias.to_bytes(2, "big")
                packet = _packet(0x30, b"\0\0" + own + section + payload)
            else:
                of_5 = of_5 or _packet(0x30, name + _length(len(section)) + section + payload)
                packet = of_5
            if 0 < five.packet_max[conn] < len(packet):
                return False
        if not packet or tx_end[conn] + len(packet) > tx_limit[conn]:
            return False
        packets.append(packet)
    for i in range(first, last):
        packet = packets[i - first]
        if packet:
            place(conns.columns, i, i + 1, packet, 0, len(packet))
    return True
