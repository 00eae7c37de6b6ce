# watch.py - what the broker writes, packet by packet, against the model.
from . import queues
from .decode import (
    ALIAS,
    CONNACK,
    DISCONNECT,
    EXPIRY,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
)
from .messages import number_of
from .session import DONE, RELEASED, SENT_1, SENT_2

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
        _check_order(model, link, owed)
    _check_content(model, link, packet, owed)
    if not owed.sent:
        owed.sent = True
    owed.link = link
    packet.owed = owed
    if packet.qos:
        owed.packet_id = packet.packet_id
        owed.state = SENT_1 if packet.qos == 1 else SENT_2
        session.in_flight[packet.packet_id] = owed
        _check_window(model, link, session)


def _check_last_words(model, link, packet, key):
    # What was in the buffer when the session was let go of: the next connection has it again.
    known = link.session.owed.get(key)
    if not known and not packet.retain:
        model.fail("link %d: PUBLISH of %s, which it was never owed", link.number, key)
    for owed in known or ():
        owed.first_link = 0  # it may have been sent, whatever was seen of it
    packet.owed = known[0] if known else None


def _is_late(link, packet, key):
    """Was it put in the buffer once more before its acknowledgement came?"""
    session = link.session
    for owed in session.owed.get(key, ()):
        if packet.dup and owed.packet_id == packet.packet_id and owed.state in (RELEASED, DONE):
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
    for owed in session.owed.get(key, ()):
        if _fits(packet, owed):
            score = _likeness(link, packet, owed)
            if best is None or score > best[0]:
                best = score, owed
    if best and best[0] < _MAYBE and link.level == 5 and packet.retain:
        owed = model.retained.given(link, packet, key, True)  # rather, by its identifiers
        if owed:
            return owed
    if best:
        owed = best[1]
        if packet.dup and session.links <= owed.first_link:
            model.fail("link %d: DUP, though it is new: %r", link.number, owed)
        if packet.retain:
            model.retained.credit(session, packet, key)
        return owed
    owed = model.retained.given(link, packet, key, False) if packet.retain else None
    owed = owed or queues.passed(model, session, packet, key)
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


def _check_order(model, link, owed):
    copies = len(link.session.owed.get(owed.msg.key(), (0, 0)))
    if not owed.in_order or copies > 1 or model.settings.retry_interval:
        return
    if owed.qos:
        if owed.seq < link.last_seq:
            model.fail("link %d: out of order: %r", link.number, owed)
        link.last_seq = owed.seq
        return
    if owed.msg.sender == link.session.name:
        return  # what waits in the queue is overtaken by what finds room
    row = (owed.msg.sender, owed.msg.topic)
    if owed.seq < link.last_0.get(row, 0):
        model.fail("link %d: out of order: %r", link.number, owed)
    link.last_0[row] = owed.seq


def _check_content(model, link, packet, owed):
    msg = owed.msg
    good = packet.topic == msg.topic and packet.retain == owed.retain
    good = good and len(packet.payload) == msg.size
    if link.level == 5:
        good = good and (packet.passed == msg.props or not msg.size)
        _check_expiry(model, link, packet, msg)
        known = owed.identifiers is not None and owed.changes == link.session.changes
        if known and sorted(packet.identifiers) != owed.identifiers:
            what = (link.number, packet.identifiers, owed.identifiers, owed)
            model.fail("link %d: identifiers %s, not %s: %r", *what)
    if not good:
        model.fail("link %d: %s is not as it was: %r", link.number, packet.topic, msg)


def _check_expiry(model, link, packet, msg):
    left = packet.props.get(EXPIRY, -1)
    if msg.deadline is None:
        if left != -1:
            model.fail("link %d: an expiry that nobody gave: %r", link.number, msg)
        return
    late = (model.now() - msg.deadline) / 1000
    if not 0 < left <= msg.expiry:
        model.fail("link %d: expires in %d: %r", link.number, left, msg)
    if link.blocked_turn >= model.world.turns - 1 or packet.dup:
        return  # it may have waited in the outgoing buffer
    slack = model.world.slack_ms / 1000
    if late > slack or abs(left + late) > 2 + slack:
        model.fail("link %d: %d s after its time: %r", link.number, late, msg)


def _check_window(model, link, session):
    most = model.broker.max_inflight
    count = len(session.in_flight)
    if link.level == 5:
        most = link.receive_max
        count = 0
        for packet_id in session.in_flight:
            count += session.in_flight[packet_id].link is link
    if count > most:
        model.fail("link %d: %d in flight, of %d", link.number, count, most)
