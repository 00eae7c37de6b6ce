# watch.py - what the broker writes, packet by packet, against the model.
from slotmq_tools.codec import (
    ALIAS,
    CONNACK,
    DISCONNECT,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
)

from . import content, groups, peek
from .messages import number_of
from .session import DONE, RELEASED, SENT_1, SENT_2, Owed

_EXACT, _MAYBE = 4, 2  # how like its identifiers are


def written(model, link, packet):
    """The broker has written a packet."""
    kind = packet.kind
    if link.packet_max and packet.size > link.packet_max:
        model.fail("link %d: a packet of %d bytes", link.number, packet.size)
    if kind == PUBLISH:
        _publish(model, link, packet)
    elif kind == DISCONNECT:
        link.told = packet.code
    elif kind == PUBREL and not _is_due(link, packet):
        _released_again(model, link, packet)
    else:
        _answer(model, link, packet)


# Answers, which come in the order of what they answer


def _is_due(link, packet):
    head = link.due[0] if link.due else None
    return head and head[0] == "ack" and head[1:3] == (packet.kind, packet.packet_id)


def _answer(model, link, packet):
    if not link.due:
        model.fail("link %d: packet %d of id %d is no answer", *_about(link, packet))
    due = link.due.pop(0)
    need = link.needs.pop(0)
    if link.is_early(packet, need):
        model.fail("link %d: %s before it is kept", link.number, due)
    if not ANSWERS[packet.kind](packet, due):
        what = _about(link, packet)
        model.fail("link %d: packet %d of id %d, not %s", what[0], what[1], what[2], due)


def _about(link, packet):
    return link.number, packet.kind, packet.packet_id


def _connack(packet, due):
    if due[0] != "connack":
        return False
    return packet.code != 0 if due[2] else not packet.code and packet.present == due[1]


def _ack(packet, due):
    if due[:3] != ("ack", packet.kind, packet.packet_id):
        return False
    return packet.code != 0x10 or not due[3]


def _codes(packet, due):
    if due[0] != ("suback" if packet.kind == SUBACK else "unsuback"):
        return False
    if due[1] != packet.packet_id:
        return False
    if packet.kind == UNSUBACK:
        return not packet.codes or list(packet.codes) == due[2]
    if len(packet.codes) != len(due[2]):
        return False
    for code, wanted in zip(packet.codes, due[2]):  # noqa: B905
        if code != wanted and not (wanted < 0 and code >= 0x80):
            return False
    return True


def _pong(packet, due):
    return due[0] == "pingresp"


ANSWERS = {
    CONNACK: _connack,
    PUBACK: _ack,
    PUBREC: _ack,
    PUBREL: _ack,
    PUBCOMP: _ack,
    SUBACK: _codes,
    UNSUBACK: _codes,
    PINGRESP: _pong,
}


def _released_again(model, link, packet):
    owed = link.session.in_flight.get(packet.packet_id) if link.session else None
    known = (owed and owed.state == RELEASED) or model.settings.retry_interval
    if not known and link.attached:
        model.fail("link %d: PUBREL of id %d", link.number, packet.packet_id)


# PUBLISH


def _publish(model, link, packet):
    session = link.session
    if session is None:
        model.fail("link %d: PUBLISH to nobody", link.number)
    _find_topic(model, link, packet)
    number = number_of(packet.payload)
    if number < 0:
        model.fail("link %d: a payload of nobody's: %r", link.number, packet.payload[:40])
    key = number or packet.topic
    if not link.attached:
        _check_last_words(model, link, packet, key)
        return
    if model.settings.retry_interval and _is_late(link, packet, key):
        return
    owed = _find(model, link, packet, key)
    if not owed.retain:
        content.check_order(model, link, owed)
    content.check_content(model, link, packet, owed)
    if not owed.sent:
        owed.sent = True
        if link.is_early(packet, owed.need):
            model.fail("link %d: sent before it is kept: %r", link.number, owed)
    owed.link = link
    owed.is_back = False
    packet.owed = owed
    if packet.qos:
        owed.packet_id = packet.packet_id
        owed.state = SENT_1 if packet.qos == 1 else SENT_2
        session.in_flight[packet.packet_id] = owed
        content.check_window(model, link, session)


def _check_last_words(model, link, packet, key):
    # What was in the buffer when the session was let go of: the next connection has it again.
    known = link.session.owed.get(key)
    shared = [sub for sub in link.session.matching(packet.topic) if sub.group is not None]
    if not known and not packet.retain and not shared:
        model.fail("link %d: PUBLISH of %s, which it was never owed", link.number, key)
    found = link.session.in_flight.get(packet.packet_id)
    if found and found.msg.key() != key:
        found = None
    group = _group(model, link.session, packet, peek.NONE)
    exact = found
    for owed in known or ():
        owed.first_link = 0  # it may have been sent, whatever was seen of it
        fewer = not found or (not exact and owed.last_words < found.last_words)
        if fewer and _fits(packet, owed) and owed.group_slot == group:
            found = owed
    if found:
        found.last_words += 1
    same = [owed for owed in known or () if owed.qos == packet.qos]
    packet.owed = found or (same[0] if same else None)


def _group(model, session, packet, unknown):
    # The slot of the group by which it came; at QoS 0 there is nothing to see that by.
    rows = peek.queue(model.broker, session.name) if packet.qos else []
    groups = [row.group for row in rows if row.packet_id == packet.packet_id]
    return groups[0] if groups else unknown


def _is_late(link, packet, key):
    """Was it put in the buffer once more before its acknowledgement came?"""
    session = link.session
    for owed in session.owed.get(key, ()):
        known = owed.link is link and owed.packet_id == packet.packet_id
        if packet.dup and known and owed.state in (RELEASED, DONE):
            packet.owed = owed
            return session.in_flight.get(packet.packet_id) in (None, owed)
    return False


def _find_topic(model, link, packet):
    alias = packet.props.get(ALIAS, 0) if packet.props else 0
    if not alias:
        return
    model.world.seen["alias"] += 1
    if packet.topic:
        link.aliases[alias] = packet.topic
    elif alias in link.aliases:
        packet.topic = link.aliases[alias]
    else:
        model.fail("link %d: alias %d is not known", link.number, alias)


def _find(model, link, packet, key):
    session = link.session
    owed = session.in_flight.get(packet.packet_id) if packet.qos else None
    if owed:
        _check_again(model, link, packet, owed, key)
        return owed
    best = None
    rows = session.owed.get(key, ())
    if packet.dup:  # rather one that may have been sent
        rows = [owed for owed in rows if owed.first_link < session.links] or rows
    if len(rows) > 1:
        group = _group(model, session, packet, None)
        rows = [o for o in rows if o.group_slot == group and _fits(packet, o)] or rows
    for owed in rows:
        if _fits(packet, owed):
            score = _likeness(link, packet, owed)
            if best is None or score > best[0]:
                best = score, owed
    if best and best[0] < _MAYBE and link.level == 5:  # rather something with its identifiers
        owed = groups.passed(model, session, packet, key)
        if packet.retain:
            owed = model.retained.given(link, packet, key, True) or owed
        if owed:
            return owed
    if best:
        owed = best[1]
        if packet.dup and session.links <= owed.first_link:
            given = model.retained.given(link, packet, key, False) if packet.retain else None
            if given:
                return given
            model.fail("link %d: DUP, though it is new: %r", link.number, owed)
        if packet.retain:
            model.retained.credit(session, packet, key)
        return owed
    owed = model.retained.given(link, packet, key, False) if packet.retain else None
    owed = owed or groups.passed(model, session, packet, key)
    if not owed and not packet.qos and model.world.plan.rots:
        # Of two states that differ in a will of QoS 0 only, the older one may have been found.
        known = session.owed.get(key)
        owed = Owed(known[-1].msg, 0, False, packet.retain) if known else None
    if not owed:
        known = session.owed.get(key)
        what = (link.number, packet.qos, packet.retain, packet.dup, key, session.name, known)
        model.fail("link %d: PUBLISH q%d r%d d%d of %s, which %s is not owed: %s", *what)
    return owed


def _fits(packet, owed):
    fits = owed.qos == packet.qos and owed.retain == packet.retain
    return fits and not owed.sent and owed.state != DONE


def _likeness(link, packet, owed):
    # Of several that it may be: one of several groups, or one of several clears, of which
    # some may be lost.
    score = 1 if owed.sure else 0
    if link.level == 5:
        if owed.identifiers == sorted(packet.identifiers):
            score += _EXACT
        elif owed.changes != link.session.changes or owed.identifiers is None:
            score += _MAYBE
    if not packet.payload and link.level == 5 and owed.msg.props == packet.passed:
        score += 8
    return score


def _check_again(model, link, packet, owed, key):
    number = link.number
    if owed.msg.key() != key:
        model.fail("link %d: id %d is in flight twice: %r", number, packet.packet_id, owed)
    if owed.state == RELEASED:
        model.fail("link %d: PUBLISH after PUBREC: %r", number, owed)
    if not packet.dup:
        model.fail("link %d: again, without DUP: %r", number, owed)
    if owed.link is link and not model.settings.retry_interval:
        model.fail("link %d: twice on one connection: %r", number, owed)
    model.world.seen["sent again"] += 1
