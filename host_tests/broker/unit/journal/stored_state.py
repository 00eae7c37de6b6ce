# stored_state.py - all that a journal stores of a broker, as values to compare. Slots, which a
# start may choose anew, do not show in it.
from tables import came_by

NONE = 0xFFFF


# ruff: noqa: RUF005 - MicroPython has no stars in a tuple
def tables(broker):
    sessions = broker.sessions
    used = [n for n in range(sessions.slots) if sessions.used(n)]
    retained = [msg for msg in broker.retained.msg if msg != NONE]
    return {
        "sessions": sorted([session(broker, n) for n in used]),
        "subscriptions": sorted([row for n in used for row in subscriptions(broker, n)]),
        "received": sorted([row for n in used for row in received(broker, n)]),
        "deliveries": sorted([row for n in used for row in queue(broker, n)]),
        "retained": sorted([message(broker, msg) for msg in retained]),
    }


def session(broker, n):
    """client id, ends with its connection, of 5.0, expiry, left, will; its delay, due, since"""
    sessions, five = broker.sessions, broker.five
    will = sessions.will[n]
    row = (sessions.client_id(n), sessions.clean[n], broker.subscriptions.kind[n])
    row += (five.expiry[n], sessions.left[n], message(broker, will))
    if will == NONE:
        return row
    return row + (five.will_delay[n], five.will_at[n], five.will_since[n])


def subscriptions(broker, n):
    """client id, filter, QoS, options, identifier, share name"""
    subs, five = broker.subscriptions, broker.five
    found = []
    sub = broker.sessions.first_sub[n]
    while sub != NONE:
        text = bytearray(64)
        start = subs.filter_text(subs.node[sub], text, 64)
        row = (broker.sessions.client_id(n), bytes(text[start:]), subs.qos[sub])
        row += (five.options[sub], five.identifier[sub], share(broker, five.share[sub]))
        found.append(row)
        sub = subs.next_in_session[sub]
    return found


def share(broker, group):
    name = bytearray(16)
    return bytes(name[: broker.five.shares.names.read(group, name, 0)]) if group != NONE else b""


def received(broker, n):
    """client id, packet id, the message that waits for its PUBREL"""
    sessions = broker.sessions
    found = []
    for i in range(n * sessions.received, n * sessions.received + sessions.id_count[n]):
        msg = sessions.id_msg[i] if sessions.id_msg else NONE  # with qos2_delivery release
        found.append((sessions.client_id(n), sessions.ids[i], message(broker, msg)))
    return found


def queue(broker, n):
    """client id, place in its queue, packet id, state, flags, message, share name, identifier"""
    deliveries = broker.deliveries
    found = []
    entry = broker.sessions.head[n]
    while entry != NONE:
        msg = deliveries.msg[entry]
        row = (broker.sessions.client_id(n), len(found), entry + 1, deliveries.state[entry])
        row += (deliveries.flags[entry] & 31, message(broker, msg))
        group, identifier = came_by(broker, entry)
        found.append(row + (share(broker, group), identifier))
        entry = deliveries.next[entry]
    return found


def message(broker, msg):
    """topic, payload, flags, properties, when it expires, multiples of 2^25 s after that"""
    if msg == NONE:
        return None
    messages, five = broker.messages, broker.five
    topic = messages.topic_len[msg] + 2
    text = bytearray(topic + messages.payload_len[msg])
    messages.arena.move(messages.first[msg], 0, text, 0, len(text), 1)
    flags = messages.flags[msg] & 15
    props, expires, far = 0, 0, 0
    if flags & 8:
        props, expires, far = five.props[msg], five.expires[msg], five.far[msg]
    data = bytes(text[topic:])
    return bytes(text[2:topic]), data[props:], flags, data[:props], expires, far
