# output.py - compare each packet that the broker has written with the model: is it an answer that
# is due, or a message that the session is owed?
from slotmq_tools import codec

from ..messages import number_of
from . import output_content, shared_subscriptions, tables
from .delivery import DONE, RELEASED, SENT_1, SENT_2, Delivery

# Scores of _similarity()
_REQUIRED, _IDENTIFIERS_UNKNOWN, _SAME_IDENTIFIERS, _SAME_PROPERTIES = 1, 2, 4, 8


def written(model, link, packet):
    """The broker has written a packet."""
    kind = packet.kind
    if link.packet_max and packet.size > link.packet_max:
        model.fail("link %d: a packet of %d bytes", link.number, packet.size)
    if kind == codec.DISCONNECT:
        return
    if kind == codec.PUBLISH:
        _publish(model, link, packet)
    elif kind == codec.PUBREL and not _is_due(link, packet):
        _released_again(model, link, packet)
    else:
        _answer(model, link, packet)


# Answers, in the order of the packets that they answer


def _is_due(link, packet):
    head = link.pending_answers[0] if link.pending_answers else None
    return head and head[0] == "ack" and head[1:3] == (packet.kind, packet.packet_id)


def _answer(model, link, packet):
    if not link.pending_answers:
        model.fail("link %d: packet %d of id %d answers nothing", *_about(link, packet))
    due = link.pending_answers.pop(0)
    needed_change = link.needed_changes.pop(0)
    if link.is_early(packet, needed_change):
        model.fail("link %d: %s before the commit", link.number, due)
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
    if due[0] != ("suback" if packet.kind == codec.SUBACK else "unsuback"):
        return False
    if due[1] != packet.packet_id:
        return False
    if packet.kind == codec.UNSUBACK:
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
    codec.CONNACK: _connack,
    codec.PUBACK: _ack,
    codec.PUBREC: _ack,
    codec.PUBREL: _ack,
    codec.PUBCOMP: _ack,
    codec.SUBACK: _codes,
    codec.UNSUBACK: _codes,
    codec.PINGRESP: _pong,
}


def _released_again(model, link, packet):
    delivery = link.session.in_flight.get(packet.packet_id) if link.session else None
    known = (delivery and delivery.state == RELEASED) or model.settings.retry_interval
    if not known and link.attached:
        model.fail("link %d: PUBREL of id %d", link.number, packet.packet_id)


# PUBLISH


def _publish(model, link, packet):
    session = link.session
    if session is None:
        model.fail("link %d: PUBLISH without a session", link.number)
    if len(packet.topic) > model.broker.limits.tx_bytes:
        model.world.events["long topic"] += 1
    _find_topic(model, link, packet)
    number = number_of(packet.payload)
    if number < 0:
        model.fail("link %d: a payload that no client sent: %r", link.number, packet.payload[:40])
    key = number or packet.topic
    if not link.attached:
        _check_after_close(model, link, packet, key)
        return
    if model.settings.retry_interval and _is_late(link, packet, key):
        return
    delivery = _find(model, link, packet, key)
    if not delivery.retain:
        output_content.check_order(model, link, delivery)
    output_content.check_content(model, link, packet, delivery)
    if not delivery.sent:
        delivery.sent = True
        if link.is_early(packet, delivery.needed_change):
            model.fail("link %d: sent before the commit: %r", link.number, delivery)
    delivery.link = link
    delivery.restored = False
    packet.delivery = delivery
    if packet.qos:
        delivery.packet_id = packet.packet_id
        delivery.state = SENT_1 if packet.qos == 1 else SENT_2
        session.in_flight[packet.packet_id] = delivery
        output_content.check_window(model, link, session)


def _check_after_close(model, link, packet, key):
    """A message that was in the outgoing buffer when the session was detached; the next connection
    sends it again."""
    known = link.session.deliveries.get(key)
    shared = [sub for sub in link.session.matching(packet.topic) if sub.group is not None]
    if not known and not packet.retain and not shared:
        model.fail("link %d: PUBLISH of %s, which the session never had", link.number, key)
    found = link.session.in_flight.get(packet.packet_id)
    if found and found.msg.key() != key:
        found = None
    group = _group(model, link.session, packet, tables.NONE)
    exact = found
    for delivery in known or ():
        delivery.first_link = 0  # it may have been sent, though no byte of it was seen
        fewer = not found or (not exact and delivery.seen_after_close < found.seen_after_close)
        if fewer and _fits(packet, delivery) and delivery.group_slot == group:
            found = delivery
    if found:
        found.seen_after_close += 1
    same = [delivery for delivery in known or () if delivery.qos == packet.qos]
    packet.delivery = found or (same[0] if same else None)


def _group(model, session, packet, unknown):
    """Return the group's slot of the row with this packet id. At QoS 0 there is no row."""
    rows = tables.queue(model.broker, session.name) if packet.qos else []
    groups = [row.group for row in rows if row.packet_id == packet.packet_id]
    return groups[0] if groups else unknown


def _is_late(link, packet, key):
    """Was it in the outgoing buffer, to be sent again, when its acknowledgement came?"""
    session = link.session
    for delivery in session.deliveries.get(key, ()):
        known = delivery.link is link and delivery.packet_id == packet.packet_id
        if packet.dup and known and delivery.state in (RELEASED, DONE):
            packet.delivery = delivery
            return session.in_flight.get(packet.packet_id) in (None, delivery)
    return False


def _find_topic(model, link, packet):
    alias = packet.props.get(codec.ALIAS, 0) if packet.props else 0
    if not alias:
        return
    model.world.events["alias"] += 1
    if alias > link.client.plan.alias_max:
        model.fail("link %d: alias %d is above the maximum of the client", link.number, alias)
    if packet.topic:
        link.aliases[alias] = packet.topic
    elif alias in link.aliases:
        packet.topic = link.aliases[alias]
    else:
        model.fail("link %d: alias %d is not known", link.number, alias)


def _find(model, link, packet, key):
    session = link.session
    delivery = session.in_flight.get(packet.packet_id) if packet.qos else None
    if delivery:
        _check_again(model, link, packet, delivery, key)
        return delivery
    best, score = _most_similar(model, link, packet, key)
    if best and score < _IDENTIFIERS_UNKNOWN and link.level == 5:
        # Its identifiers are others: prefer what has the right ones.
        delivery = shared_subscriptions.passed_on_delivery(model, session, packet, key)
        if packet.retain:
            delivery = model.retained.explain(link, packet, key, True) or delivery
        if delivery:
            return delivery
    if best:
        if packet.dup and session.links <= best.first_link:
            delivery = model.retained.explain(link, packet, key, False) if packet.retain else None
            if delivery:
                return delivery
            model.fail("link %d: DUP, though it is new: %r", link.number, best)
        if packet.retain:
            model.retained.credit(session, packet, key)
        return best
    delivery = model.retained.explain(link, packet, key, False) if packet.retain else None
    delivery = delivery or shared_subscriptions.passed_on_delivery(model, session, packet, key)
    if not delivery and not packet.qos and model.world.plan.rots:
        # The start may have found an older commit, which differs in a will at QoS 0 only.
        known = session.deliveries.get(key)
        delivery = Delivery(known[-1].msg, 0, False, packet.retain) if known else None
    if not delivery:
        known = session.deliveries.get(key)
        what = (link.number, packet.qos, packet.retain, packet.dup, key, session.name, known)
        model.fail("link %d: PUBLISH q%d r%d d%d of %s, which is not in session %s: %s", *what)
    return delivery


def _most_similar(model, link, packet, key):
    """-> (the delivery of this message that is most like the packet, or None; its score)"""
    session = link.session
    rows = session.deliveries.get(key, ())
    if packet.dup:  # prefer one that may have been sent
        rows = [one for one in rows if one.first_link < session.links] or rows
    if len(rows) > 1:
        group = _group(model, session, packet, None)
        rows = [one for one in rows if one.group_slot == group and _fits(packet, one)] or rows
    best, most = None, -1
    for delivery in rows:
        if _fits(packet, delivery):
            score = _similarity(link, packet, delivery)
            if score > most:
                best, most = delivery, score
    return best, most


def _fits(packet, delivery):
    fits = delivery.qos == packet.qos and delivery.retain == packet.retain
    return fits and not delivery.sent and delivery.state != DONE


def _similarity(link, packet, delivery):
    """Several deliveries may fit: of several groups, or of several messages without a payload."""
    score = _REQUIRED if delivery.required else 0
    if link.level < 5:
        return score
    have_changed = delivery.subscription_changes != link.session.subscription_changes
    if delivery.identifiers == sorted(packet.identifiers):
        score += _SAME_IDENTIFIERS
    elif delivery.identifiers is None or have_changed:
        score += _IDENTIFIERS_UNKNOWN
    if not packet.payload and delivery.msg.props == packet.passed:
        score += _SAME_PROPERTIES
    return score


def _check_again(model, link, packet, delivery, key):
    number = link.number
    if delivery.msg.key() != key:
        model.fail("link %d: id %d is in flight twice: %r", number, packet.packet_id, delivery)
    if delivery.state == RELEASED:
        model.fail("link %d: PUBLISH after PUBREC: %r", number, delivery)
    if not packet.dup:
        model.fail("link %d: again, without DUP: %r", number, delivery)
    if delivery.link is link and not model.settings.retry_interval:
        model.fail("link %d: twice on one connection: %r", number, delivery)
    model.world.events["sent again"] += 1
