# version5.py - what MQTT 5.0 adds to a bridge's own packets, and what the other broker's CONNACK
# says of its limits: Receive Maximum, Maximum QoS, Maximum Packet Size, topic aliases, and whether
# it serves RETAIN, wildcards and shared subscriptions [5.0, 3.1.2.11, 3.2.2.3]. Owns nothing: the
# Bridge has what was found, as `remote`. Control plane: allocates.
from slotmq.constants import (BODY, CHANGED, DUP, END, LEFT, MALFORMED, MAX_INFLIGHT, NEVER, NONE,
    NO_LOCAL, PACKET_MAX, QUEUED, RAP, RELEASED, UNSAVED)
from slotmq.platform import ondemand

# Properties
_SESSION_EXPIRY_ID = 0x11
KEEP_ALIVE = 0x13
RECEIVE_MAX = 0x21
ALIAS_MAX = 0x22
MAX_QOS = 0x24
RETAIN = 0x25
LARGEST = 0x27
WILDCARDS = 0x28
SHARED = 0x2A
_REASON = 0x1F
_SAID = 100  # bytes of a text that are taken
# By identifier: bytes of a number, 0: a text, 9: a pair of texts
_OF_CONNACK = {
    _SESSION_EXPIRY_ID: 4, 0x12: 0, KEEP_ALIVE: 2, 0x15: 0, 0x16: 0, 0x1A: 0, 0x1C: 0, _REASON: 0,
    RECEIVE_MAX: 2, ALIAS_MAX: 2, MAX_QOS: 1, RETAIN: 1, 0x26: 9, LARGEST: 4, WILDCARDS: 1,
    0x29: 1, SHARED: 1,
}  # fmt: skip

def properties(options, limits, pkt):
    """The properties of CONNECT, with their length."""
    expiry = options.bridge_session_expiry_interval
    if expiry is None:
        expiry = 0 if options.cleansession else 0xFFFFFFFF
    most = min(options.bridge_receive_maximum or limits.received, limits.received)
    body = b"\x11" + expiry.to_bytes(4, "big") if expiry else b""
    body += b"\x21" + most.to_bytes(2, "big") + b"\x27" + pkt[PACKET_MAX].to_bytes(4, "big")
    aliases = min(options.bridge_max_topic_alias, limits.aliases)
    if aliases:
        body += b"\x22" + aliases.to_bytes(2, "big")
    return bytes((len(body),)) + body


def read(buf, at, end):
    """The property section at buf[at] -> ({identifier: number or bytes}, the offset past it).
    ValueError: it is malformed."""
    size = shift = 0
    more = True
    while more and at < end and shift < 28:
        more = buf[at] > 127
        size |= (buf[at] & 127) << shift
        shift += 7
        at += 1
    stop = end + 1 if more else at + size
    if stop > end:
        raise ValueError("length")
    found = {}
    while at < stop:
        name = buf[at]
        kind = _OF_CONNACK.get(name, -1)
        at += 1
        if kind < 0 or name in found and kind != 9:
            raise ValueError(name)
        if kind in (0, 9):
            for _ in range(2 if kind else 1):
                n = int.from_bytes(bytes(buf[at : at + 2]), "big")
                value = bytes(buf[at + 2 : at + 2 + min(n, _SAID)])
                at += 2 + n
        else:
            value = int.from_bytes(bytes(buf[at : at + kind]), "big")
            at += kind
        if at > stop or name in (RECEIVE_MAX, LARGEST) and not value:
            raise ValueError(name)
        if kind == 1 and value > 1:
            raise ValueError(name)
        found[name] = value
    return found, stop


def reason(code, found=()):
    """A reason code as text, with what the other broker says about it."""
    text = "0x%02x" % code
    if code & 0x80:
        text += ", " + ondemand.take("status.log_reasons", 0).words(code)
    said = found[_REASON] if _REASON in found else b""
    if said:
        text += ": " + "".join([chr(c) if 31 < c < 127 else "?" for c in said])
    return text


def may_ask(remote, name):
    """Why the other broker cannot serve this filter, or None."""
    if name[:7] == b"$share/":
        return None if remote.get(SHARED, 1) else "shared subscriptions"
    if (b"+" in name or b"#" in name) and not remote.get(WILDCARDS, 1):
        return "wildcards"
    return None


def options_of(name, qos):
    """The options of SUBSCRIBE. No Local is an error for shared subscriptions [3.8.3-4]."""
    return bytes((qos | RAP | (0 if name[:7] == b"$share/" else NO_LOCAL),))


def entered(bridge):
    """The session has its connection, of version 5: note the other broker's limits.

    -> True: the fast path does not know them."""
    broker = bridge.broker
    five = broker.five
    remote = bridge.remote
    conn = bridge.conn
    broker.conns.level[conn] = 5
    most = broker.deliveries.window[MAX_INFLIGHT]
    five.receive_max[conn] = min(remote.get(RECEIVE_MAX, 65535), most)
    most = min(remote.get(LARGEST, NEVER), bridge.options.bridge_max_packet_size or NEVER)
    if most < NEVER:
        most = max(most - bridge.growth, 1)
    five.packet_max[conn] = 0 if most >= NEVER else most
    aliases = five.aliases
    own = min(bridge.options.bridge_max_topic_alias, aliases.most)
    aliases.allowed[conn] = own
    aliases.offered[conn] = min(remote.get(ALIAS_MAX, 0), own)
    is_plain = most >= broker.pkt[PACKET_MAX] + 2 and remote.get(RETAIN, 1)
    return not is_plain or aliases.offered[conn] > 0


def lower_qos(bridge, most):
    """What waits, or waits for an acknowledgement, leaves with the other broker's Maximum QoS."""
    deliveries = bridge.broker.deliveries
    sessions = bridge.broker.sessions
    session = bridge.session
    entry = sessions.head[session]
    while entry != NONE:
        flags = deliveries.flags[entry]
        state = deliveries.state[entry]
        if flags >> 1 & 3 > most and state != RELEASED:
            deliveries.flags[entry] = flags & ~6 & ~DUP | most << 1 | CHANGED
            deliveries.count[UNSAVED] |= 1
            if state != QUEUED:
                deliveries.state[entry] = QUEUED
                sessions.inflight[session] -= 1
                sessions.queued[session] += 1
        entry = deliveries.next[entry]


def left(bridge, pkt, buf):
    """DISCONNECT: the other broker says why; a result."""
    at = pkt[BODY]
    end = pkt[END]
    try:
        found = read(buf, at + 1, end)[0] if end > at + 1 else {}
    except ValueError:
        return MALFORMED
    code = buf[at] if end > at else 0
    bridge.why = "it leaves: " + reason(code, found)
    return LEFT
