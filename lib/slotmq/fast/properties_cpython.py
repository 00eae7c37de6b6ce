# properties_cpython.py - the fast path for what fast/path_cpython.py leaves of MQTT 5.0: PUBLISH
# with properties that are only passed on, topic aliases in both directions, message expiry.
# v5/quick_properties_cpython.py puts it in place; on MicroPython the handlers do all that. What it
# does not take is left as it was. Owns a cache of property sections that are right, which is
# cleared when it is full.
from slotmq.constants import (ANNOUNCED, BY, BYTES_IN, EXTRA, FAST_MAX, FLAGS, NONE, PACKETS_IN,
    PACKETS_OUT, PACKET_ID, PUBLISHES, PUBLISH_IN, QUEUED, RELEASED)
from slotmq.fast.bytes_cpython import utf8_ok
from slotmq.fast.deliveries_cpython import fan, have_space
from slotmq.fast.messages_cpython import put_ack, store, unref
from slotmq.fast.path_cpython import fast_path as without_properties
from slotmq.fast.routes_cpython import place

_MOST_HEAD = 10  # most bytes beside topic, properties and payload, with an alias
_NO_SECTION = 0, b"", 0
_SECTIONS = 256  # that the cache remembers
_CACHED = 64  # bytes of a section that it may have
_TEXTS = (3, 8, 9)


class Quick:
    def __init__(self, broker):
        self.broker = broker
        self.is_expiring = 0  # not 0: a message was stored that expires
        self.sections = {}  # of packets: what _scan() says of them

    def expiring(self):
        """Was a message stored that expires, since this was called last, and does any wait?"""
        found = self.is_expiring
        self.is_expiring = 0
        return found and any(self.broker.sessions.queued)

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
        stats[PUBLISH_IN] += count
        stats[PACKETS_IN] += count
        stats[BYTES_IN] += at - first
        return at

    def _publish(self, broker, conn, buf, start, end):
        """The PUBLISH at buf[start]; -> its length, or 0."""
        flags = buf[start] & 15
        length = buf[start + 1]
        at = start + 2
        if flags & 9 or flags == 6 or at >= end or broker.queue_qos0 and not flags:
            return 0
        if length > 127:
            length = length & 127 | buf[at] << 7
            at += 1
            if length > 16383 or length < 128:
                return 0
        stop = at + length
        if stop > end or length < 3 or stop - start > broker.pkt[FAST_MAX]:
            return 0
        size = buf[at] << 8 | buf[at + 1]
        at += 2
        to = at + size
        if to > stop or size and buf[at] == 36:
            return 0
        topic = buf[at:to]
        if flags:
            to += 2
            if to > stop:
                return 0
            broker.pkt[PACKET_ID] = buf[to - 2] << 8 | buf[to - 1]
        found = _NO_SECTION
        if broker.conns.level[conn] == 5:
            n, to = _section_length(buf, to, stop)
            if n < 0 or to + n > stop:
                return 0
            if n:
                found = self._section(buf[to : to + n])
                to += n
        broker.pkt[FLAGS] = flags
        done = found and self._hand_on(broker, conn, topic, found, buf[start:stop], to - start)
        return stop - start if done else 0

    def _hand_on(self, broker, conn, topic, found, whole, at):
        """Deliver a PUBLISH whose payload is whole[at:]; False: not here."""
        flags = broker.pkt[FLAGS]
        payload = whole[at:]
        alias, section, expiry = found
        if alias:
            topic = _topic_of(broker.five.aliases, conn, alias, topic)
        routes = broker.subscriptions.routes
        slot_of = routes.senders.of(conn) if routes.senders else routes.slot_of
        slot = slot_of.get(topic, -1)
        if slot < 0:
            return False
        if not flags:
            if alias:
                whole = b""
            return self._forward(broker, conn, slot, topic, section, payload, whole)
        if not (alias or section) or expiry < 0:
            return False
        if expiry:
            section = section[5:]
        return self._accept(broker, conn, slot, topic, section, payload, expiry)

    def _section(self, data):
        """What _scan() says of a section, which may be known."""
        found = self.sections.get(data)
        if not found and (found := _scan(data)) and len(data) <= _CACHED:
            if len(self.sections) == _SECTIONS:
                self.sections.clear()
            self.sections[data] = found
        return found

    def _accept(self, broker, conn, slot, topic, section, payload, expiry):
        """Store, queue and acknowledge a QoS 1 or 2 PUBLISH, which pkt has; False: not here."""
        pkt = broker.pkt
        tables = broker.tables
        packet_id = pkt[PACKET_ID]
        qos = pkt[FLAGS] >> 1
        sessions = broker.sessions
        routes = broker.subscriptions.routes
        session = broker.conns.session[conn]
        entries = broker.subscriptions.pool[routes.first[slot] : routes.end[slot]]
        n = len(topic)
        data = n.to_bytes(2, "big") + topic + section + payload
        if not packet_id or not entries:
            return False
        if qos == 2:
            if sessions.find_received(session, packet_id) >= 0:
                return False
            count = sessions.id_count[session]
            if count >= sessions.ids_high[ANNOUNCED] or sessions.id_msg is not None:
                return False
        if not have_space(tables, entries, 0, len(entries), len(data)):
            return False
        flags = qos << 1 | (EXTRA if section or expiry else 0)
        msg = store(tables, data, 2, n, 2 + n, len(data) - 2 - n, flags)
        if msg == NONE:
            return False
        five = broker.five
        five.props[msg] = len(section)
        five.expires[msg] = expiry + broker.now if expiry else 0
        five.far[msg] = 0
        self.is_expiring = self.is_expiring or expiry
        fan(tables, entries, 0, len(entries), msg, qos)
        unref(tables, msg)
        if qos == 2:
            sessions.add_received(session, packet_id)
        put_ack(tables, conn, 0x30 + (qos << 4), packet_id)
        broker.stats[PACKETS_OUT] += 1
        return True

    def _forward(self, broker, sender, slot, topic, section, payload, whole):
        """Send a QoS 0 PUBLISH to all its receivers; whole: what version 5 without aliases gets,
        if that came so. False: not here."""
        conns = broker.conns
        routes = broker.subscriptions.routes
        entries = broker.subscriptions.pool[routes.first[slot] : routes.end[slot]]
        size = len(section) + len(payload) + len(topic)
        made = {0: whole} if conns.level[sender] == 5 else {}  # by alias; -1: of version 3
        packets = []
        for entry in entries:
            conn = broker.sessions.conn[entry >> 2]
            packet = b""
            if conn != NONE:
                alias = _way(broker, conn, topic, size + _MOST_HEAD)
                if alias < -1 or conn == sender:
                    return False
                packet = made.get(alias) or _packet_of(topic, section, payload, alias)
                made[alias] = packet
            packets.append(packet)
        _, conn_of, out, tx_end, tx_limit, tx, dirty, counts = conns.columns
        columns = entries, conn_of, out, tx_end, tx_limit, tx, dirty, counts
        for i, packet in enumerate(packets):
            if packet:
                place(columns, i, i + 1, packet, 0, len(packet))
        return True

    def send(self, columns, session, conn, most):
        """send() of deliveries_viper.py for a client of version 5, with properties and aliases."""
        d, s, m, c = columns
        entry = s.cursor[session]
        while entry != NONE:
            flags = d.flags[entry]
            state = d.state[entry]
            if state == RELEASED or not flags & 6:
                return 2
            if s.inflight[session] >= most:
                if state == QUEUED:
                    return 0
                if s.inflight[session] > most:
                    return 2
            ident = self.broker.five.ident[entry] if flags & BY else 0
            packet = b""
            if ident >= 0:
                packet = self._delivery(m, conn, d.msg[entry], flags, entry + 1, ident)
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
            c.counts[PUBLISHES] += 1
            if state == QUEUED:
                d.state[entry] = flags >> 1 & 3
                d.flags[entry] = flags | 8
                s.queued[session] -= 1
                s.inflight[session] += 1
            entry = d.next[entry]
            s.cursor[session] = entry
        return 0

    def _delivery(self, m, conn, msg, flags, packet_id, ident):
        """The PUBLISH of a delivery; empty: it needs other code."""
        five = self.broker.five
        section = 0
        own = b""
        if m.flags[msg] & EXTRA:
            if five.expires[msg]:
                left = (five.expires[msg] - self.broker.now + 9) // 10
                if left < 1 or five.far[msg]:
                    return b""
                own = b"\2" + left.to_bytes(4, "big")
            section = five.props[msg]
        text = m.arena.text(m.first[msg])
        split = m.topic_len[msg] + 2
        head = bytes(text[:split])
        if not flags & 4 and five.aliases.offered[conn]:
            alias = _alias_for(five.aliases, conn, head[2:])
            if alias < 0:
                return b""
            if alias:
                head = b"\0\0"
                own += b"\x23" + alias.to_bytes(2, "big")
        if ident:
            own += b"\x0b" + _number(ident)
        if section + len(own) >> 14:
            return b""
        head += packet_id.to_bytes(2, "big") + _number(section + len(own)) + own
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
    """(alias or 0, the section without it, its expiry), or None: there is another property, or a
    wrong one. Expiry: in tenths of a second, if it comes first; -1: too long to be stored here."""
    alias = 0
    rest = data
    seen = set()
    stop = len(data)
    expiry = at = 0
    if data[0] == 2:
        expiry = int.from_bytes(data[1:5], "big")
        if stop < 5 or not expiry:
            return None
        expiry = -1 if expiry >> 25 else expiry * 10
        at = 5
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
    return alias, rest, expiry


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


def _number(n):
    """A variable byte integer."""
    made = bytearray()
    while n > 127:
        made.append(n & 127 | 128)
        n >>= 7
    made.append(n)
    return bytes(made)


def _packet(first, body):
    """The packet with that body; empty: it is too long."""
    n = len(body)
    return b"" if n >> 14 else bytes((first,)) + _number(n) + body


def _packet_of(topic, section, payload, alias):
    """The QoS 0 packet of a receiver with that alias; -1: of version 3."""
    name = len(topic).to_bytes(2, "big") + topic
    if alias < 0:
        return _packet(0x30, name + payload)
    if alias:
        name = b"\0\0"
        section = b"\x23" + alias.to_bytes(2, "big") + section
    return _packet(0x30, name + _number(len(section)) + section + payload)


def _way(broker, conn, topic, size):
    """The alias that a receiver knows for the topic of a packet with so many bytes at most, or 0;
    -1: it has version 3; -2: it would get a new alias, or needs other code."""
    conns = broker.conns
    five = broker.five
    level = conns.level[conn]
    if level == 6 or size >> 14 or conns.tx_end[conn] + size > conns.tx_limit[conn]:
        return -2
    if level != 5:
        return -1
    if 0 < five.packet_max[conn] < size:
        return -2
    alias = _alias_for(five.aliases, conn, topic) if five.aliases.offered[conn] else 0
    return -2 if alias < 0 else alias
