# publishing.py - publishing by the broker itself and by the program that it runs in (whose usual
# messages take the fast path, see embed/own_messages.py), checks of topics that no client may use,
# and access to the other functions of embed/. Owns nothing. Allocates.
from slotmq.constants import (BRIDGE, CARRY, DROPPED, END, FOR_THIS_PACKET, MINUTE, NONE, NOTICE,
    PACKET_MAX, PAYLOAD, PUBLISH_OUT, PUBLISH_TYPE, RETRY, TOPIC, TOPIC_LEN, WARNING)
from slotmq.delivery import retain as retaining
from slotmq.delivery import routing
from slotmq.delivery.outgoing import space
from slotmq.fast import new_packet, next_packet, topic_matches, unref, utf8_ok
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON

_NO_SESSION = -1
_NOBODYS = b"$SYS/#", b"$share/+/#"  # topics that neither the program nor a client may publish
_NEXT = 19  # of broker.stats: until when a denied PUBLISH is not logged; [20]: a large one


def find(broker, name):
    """A method of Broker that is defined here or in embed/in_process.py; else AttributeError.

    So a broker that does not use these methods has nothing of them in its heap."""
    if name == "compact":
        return lambda: compact(broker)
    if name == "dump_tree":
        from slotmq.tables.tree_text import dump

        return lambda: dump(broker)
    if name == "close" or name[:2] == "__":
        from slotmq.embed import lifetime

        return lifetime.find(broker, name)
    if name == "bridge":
        return lambda *args, **options: bridge(broker, *args, **options)
    if name not in ("subscribe", "client", "serve"):
        raise AttributeError(name)
    from slotmq.embed import in_process

    every = {
        "subscribe": in_process.subscribe,
        "client": in_process.client,
        "serve": in_process.serve,
    }
    function = every[name]
    return lambda *args, **options: function(broker, *args, **options)


def compact(broker):
    """Compact the journal, if there is one, and log its new length."""
    journal = broker.journal
    if not journal:
        return
    journal.pause = min(journal.pause, RETRY)  # the cause of a failure may be gone
    if journal.try_compaction() and journal.snapshot >= 0:
        if broker._log_mask & NOTICE:
            broker.log(NOTICE, "The journal is rewritten: %d bytes." % journal.medium.end)
    elif broker._log_mask & WARNING:
        broker.log(WARNING, "The journal cannot be rewritten now.")


def bridge(broker, name, addresses, topics, **values):
    """Broker.bridge(): pass messages to another broker and back (docs/bridge.md); -> a Bridge.

    addresses: "HOST" or "HOST:PORT"; topics: (filter, direction, QoS, prefix here, prefix there),
    from the right on optional; values: mosquitto's keys. ValueError: one of them is not possible;
    OSError: a table is full."""
    check_idle(broker)
    broker._loop()
    start = ondemand.take("bridge.start", broker.now)
    return start.add(broker, start.options(name, addresses, topics, values))


def publish(broker, topic, payload, qos, retain):
    """Broker.publish() where the fast path does not take it, or a recorder must see it."""
    topic, payload = checked(broker, topic, payload, qos, retain)
    check_idle(broker)
    return send(broker, topic, payload, qos, retain)


def checked(broker, topic, payload, qos, retain):
    """Topic and payload as bytes; ValueError: no client may publish that here."""
    topic = encoded(topic)
    payload = encoded(payload)
    most = broker.limits.topic_bytes
    if len(topic) > most or not utf8_ok(topic, 0, len(topic), 1):
        raise ValueError("topic name: 1 to %d bytes of UTF-8 without wildcards" % most)
    if topic[0] == 36 and any(_matching(_NOBODYS, topic, 0, len(topic))):
        raise ValueError("topic name: $SYS and $share are the broker's")
    if qos not in (0, 1, 2) or qos > broker.settings.max_qos:
        raise ValueError("qos: 0 to %d" % broker.settings.max_qos)
    if retain and not broker.settings.retain_available:
        raise ValueError("RETAIN: retain_available is false")
    if broker.settings.message_size_limit and len(payload) > broker.settings.message_size_limit:
        raise ValueError(
            "payload: at most %d bytes, message_size_limit" % broker.settings.message_size_limit
        )
    return topic, payload


def refused(broker, buf, topic, n, conn, size):
    """May no client publish this? That are topics of $SYS, $share and $SLOTMQ, except for the
    requests time and get of recorder/remote.py and the state of a bridge from the bridge itself
    (in version 5 it must have its client id in it), and payloads over message_size_limit. Another
    broker may publish with $ only what a bridge's topic names.

    conn: the connection, or for a will the fields of its CONNECT. Logs each such will, and once a
    minute such a PUBLISH or a payload that is too large."""
    bridges = broker.bridges
    is_strange = bridges and isinstance(conn, int) and not bridges.wants(conn, buf, topic, n)
    filters = (b"$SLOTMQ/#", b"$SLOTMQ/time", b"$SLOTMQ/record/+/get")
    found = _matching(filters, buf, topic, n)
    is_large = 0
    if is_strange:
        pass
    elif _matching((b"$SYS/broker/connection/+/state",), buf, topic, n) == [True]:
        if _is_bridge(broker, conn, bytes(buf[topic + 23 : topic + n - 6])):
            return False
    is_own = found == [True, False, False] or any(_matching(_NOBODYS, buf, topic, n))
    if not (is_own or is_strange):
        is_large = int(0 < broker.settings.message_size_limit < size)
        if not is_large:
            return False
    stats = broker.stats
    stats[DROPPED] += is_large
    is_will = not isinstance(conn, int)
    slot = _NEXT + is_large
    waits = 0 < stats[slot] - broker.now <= MINUTE  # the zero of now may have moved since
    bit = WARNING if is_large else NOTICE
    if broker._log_mask & bit and (is_will and not is_large or not waits):
        if is_will:
            what = b"the will", conn.read(conn.client_id)
        else:
            what = b"PUBLISH", broker.sessions.client_id(broker.conns.session[conn])
        if is_large or not is_will:
            stats[slot] = broker.now + MINUTE
        what += (bytes(buf[topic : topic + n]),)
        line = "Denied %s from %r to %r" % tuple([text.decode() for text in what])
        broker.log(bit, line + (_over(broker, size) if is_large else "."))
    return True


def _is_bridge(broker, conn, name):
    # name: of the bridge in its topic. Bridges of version 5 are clients like others.
    if not isinstance(conn, int):
        return conn.kind or conn.v5 and conn.read(conn.client_id) == name
    session = broker.conns.session[conn]
    kinds = broker.subscriptions.kind
    if kinds is not None and kinds[session] & BRIDGE:
        return True
    return broker.conns.level[conn] == 5 and broker.sessions.client_id(session) == name


def _over(broker, size):
    count = broker.stats[DROPPED] + broker.carried[DROPPED] * CARRY
    return ": %d bytes, see message_size_limit (dropped for all reasons: %d)." % (size, count)


def _matching(filters, buf, topic, n):
    return [topic_matches(name, 0, len(name), buf, topic, n) for name in filters]


def check_idle(broker):
    """RuntimeError while a packet is being handled: in hooks may_..., and in broker.log; on
    CPython also while another thread runs the broker."""
    if not MICROPYTHON and hasattr(broker, "check_thread"):
        broker.check_thread()
    if broker.reading != NONE and heap.in_turn():
        raise RuntimeError("within a packet: not in may_...")


def send(broker, topic, payload, qos, retain):
    """Publish what checked() has accepted, or what the broker itself says; False: a table is
    full."""
    body = len(topic).to_bytes(2, "big") + topic + (b"\0\1" if qos else b"") + payload
    size = len(body)
    length = b""
    while size > 127:
        length += bytes((size & 127 | 128,))
        size >>= 7
    buf = bytes((0x30 | qos << 1 | (1 if retain else 0),)) + length + bytes((size,)) + body
    pkt = new_packet(broker.pkt[PACKET_MAX])
    if next_packet(buf, 0, len(buf), pkt) < 0:
        raise ValueError("larger than max_packet")
    if broker.journal and broker.journal.limit:
        ondemand.take("journal.compaction", broker.now).weigh(
            broker.journal, PUBLISH_TYPE, len(buf)
        )
    five = broker.five
    if five:
        five.publisher = _NO_SESSION  # for No Local: the publisher is not the client that is read
    is_done = _route(broker, pkt, buf, qos, retain)
    if five:
        five.publisher = NONE
    if broker.journal_full == FOR_THIS_PACKET:
        broker.journal_full = broker.subscriptions.journal_full = False
    broker.turn_soon = 1  # the next turn must not wait before it sends
    return is_done


def _route(broker, pkt, buf, qos, retain):
    slot = routing.route(broker, buf, pkt[TOPIC], pkt[TOPIC_LEN])
    msg = NONE
    if routing.is_refused(broker, slot, qos):
        return False
    if qos or broker.upgrade_qos or retain and pkt[PAYLOAD] != pkt[END]:
        msg = routing.store(broker, pkt, buf, qos << 1 | (1 if retain else 0))
        if msg == NONE:
            return False  # dropped and counted, as a client's message
    if retain:
        retaining.set_message(broker, buf, pkt[TOPIC], pkt[TOPIC_LEN], msg)
    if qos or broker.upgrade_qos:
        routing.fan_out(broker, msg, qos, slot)
    else:
        routing.publish_packet(broker, pkt, buf, slot)
    if msg != NONE:
        unref(broker.tables, msg)
    return True


def put(broker, session, sub, name, text):
    """Put a value of $SYS for a new subscription, QoS 0, into the outgoing buffer, without a
    message slot: none may be free. name: with its length before it. False: not now."""
    conn = broker.sessions.conn[session]
    if broker.conns.level[conn] == 5:
        ident = broker.five.identifier[sub]
        more = b""
        while ident:
            more += bytes((ident & 127 | (128 if ident > 127 else 0),))
            ident >>= 7
        more = b"\x0b" + more if more else b""
        name += bytes((len(more),)) + more
    n = len(name) + len(text)
    data = (b"\x31" + bytes((n,)) if n < 128 else b"\x31" + bytes((n & 127 | 128, n >> 7))) + name
    data += text
    n = len(data)
    most = broker.five.packet_max[conn] if broker.conns.level[conn] == 5 else 0
    if 0 < most < n or n > broker.conns.tx_bytes:
        return True
    at = space(broker, conn, n)
    if at >= 0:
        broker.conns.tx[at : at + n] = data
        broker.stats[PUBLISH_OUT] += 1
    return at >= 0


if MICROPYTHON:

    def encoded(text):
        return text.encode() if isinstance(text, str) else text

else:
    from slotmq.embed.arguments_cpython import encoded
