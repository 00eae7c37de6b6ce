# packets.py - the effect of each packet of a client on the model.
#
# Packets are tuples (kind, ...), as clients/client.py sends them. `refusals`: what the broker has
# counted as refused in this window. The tables tell whether that was this packet.
from . import rights, routing, tables
from .delivery import RELEASED, SENT_1, SENT_2
from .session import Subscription


def handle_publish(model, link, packet, refusals):
    _, msg, qos, packet_id, _ = packet
    session = link.session
    if msg.deadline is not None:
        msg = msg.again()
    ends = model.settings.when_full["messages"] == "disconnect"
    if ends and qos and model.messages_refused_since and was_refused(model, link, qos, packet_id):
        link.ignores_input = True  # the connection ends, and nothing else happens
        return
    if qos == 2:
        handle_publish_qos_2(model, link, msg, packet_id, refusals)
        return
    if refusals.aliases:
        link.ignores_input = True
        return
    found = is_wanted(model, msg, session) and routing.publish(model, msg, session)
    if qos:
        link.pending_answers.append(("ack", 4, packet_id, found))


def was_refused(model, link, qos, packet_id):
    """A message was refused: was it this one, and not one of QoS 0 or a will?"""
    if qos == 2:
        return not tables.has_received(model.broker, link.session.name, packet_id)
    wills = [session.name for session in model.sessions if session.will]
    if [name for name in wills if not tables.has_will(model.broker, name)]:
        return not tables.attached(model.world, link)
    return True


def is_wanted(model, msg, session):
    if not rights.may_write(model, session.user, msg.topic):
        model.world.events["denied"] += 1
        return False
    most = model.broker.settings.message_size_limit
    return not most or msg.size <= most


def handle_publish_qos_2(model, link, msg, packet_id, refusals):
    session = link.session
    found = True
    if packet_id not in session.received:
        announced = model.broker.sessions.ids_high[2]  # as Receive Maximum
        if len(session.received) >= (announced if link.level == 5 else model.limits.received):
            link.ignores_input = True
            return
        waits = model.settings.qos2_delivery == "release"  # for PUBREL
        wanted = is_wanted(model, msg, session)
        if msg.expiry is not None:
            routing.begin_to_expire(model, msg)
        stored = tables.has_received(model.broker, session.name, packet_id)
        if (stored or not refusals.messages) and (wanted or link.level < 5):
            session.received[packet_id] = msg if waits and wanted else None
            model.note_journal_change(session)
            if waits and refusals.messages:
                model.retained.learn_message_of_id(session, packet_id)
        if wanted and not waits:
            found = routing.publish(model, msg, session)
    link.pending_answers.append(("ack", 5, packet_id, found))


def handle_pubrel(model, link, packet, refusals):
    session = link.session
    if packet[1] in session.received:
        model.note_journal_change(session)
    msg = session.received.pop(packet[1], None)
    if msg and rights.may_write(model, session.user, msg.topic):
        routing.publish(model, msg, session)
    link.pending_answers.append(("ack", 7, packet[1], True))


def handle_puback(model, link, packet, refusals):
    delivery = link.session.in_flight.get(packet[1])
    if delivery and delivery.state == SENT_1:
        link.session.finish(delivery)


def handle_pubrec(model, link, packet, refusals):
    delivery = link.session.in_flight.get(packet[1])
    if packet[2] >= 0x80:
        if delivery and delivery.state == SENT_2:
            link.session.finish(delivery)
        return
    if delivery and delivery.state == SENT_2:
        delivery.state = RELEASED
        model.note_journal_change(link.session)
    link.pending_answers.append(("ack", 6, packet[1], True))


def handle_pubcomp(model, link, packet, refusals):
    delivery = link.session.in_flight.get(packet[1])
    if delivery and delivery.state == RELEASED:
        link.session.finish(delivery)


def handle_subscribe(model, link, packet, refusals):
    _, packet_id, filters, identifier = packet
    codes = []
    for text, group, options in filters:
        granted = subscribe(model, link, text, group, options, identifier, refusals)
        codes.append(min(options & 3, model.broker.max_qos) if granted else -1)
    link.pending_answers.append(("suback", packet_id, codes))


def subscribe(model, link, text, group, options, identifier, refusals):
    session = link.session
    may = rights.may_subscribe(model, session.user, text)
    if not tables.subscribed(model.broker, session.name, text, group):
        if may and not refusals.subscriptions:
            model.fail("%s has no subscription %s", session.name, text)
        return False
    sub = session.subscription(text, group)
    if not may:
        if not sub:  # else it is of a time with other rules, and stays as it is
            model.fail("%s may not subscribe to %s", session.name, text)
        return False
    is_new = sub is None
    if is_new:
        sub = Subscription(text, group)
        session.subscriptions.append(sub)
    else:
        session.removed.append(sub.copy())
    qos = min(options & 3, model.broker.max_qos)
    sub.update(qos, options, identifier, model.world.turns)
    session.subscription_changes += 1
    model.note_journal_change(session)
    handling = options >> 4 & 3
    if group is None and (handling == 0 or (handling == 1 and is_new)):
        model.retained.begin_scan(session, sub, link)
    return True


def unsubscribe(model, session, sub):
    session.subscriptions.remove(sub)
    session.removed.append(sub)
    session.subscription_changes += 1
    model.note_journal_change(session)
    for scan in session.scans:
        if scan.subscription is sub:
            scan.expected = {}
            scan.open = False


def handle_unsubscribe(model, link, packet, refusals):
    _, packet_id, filters = packet
    codes = []
    for text, group in filters:
        old = link.session.subscription(text, group)
        codes.append(0 if old else 0x11)
        if old:
            unsubscribe(model, link.session, old)
    link.pending_answers.append(("unsuback", packet_id, codes))


def handle_ping(model, link, packet, refusals):
    link.pending_answers.append(("pingresp",))


def handle_raised(model, link, packet, refusals):
    """A hook has raised MemoryError: the connection ends."""
    link.ignores_input = True


def handle_disconnect(model, link, packet, refusals):
    _, with_will, expiry = packet
    link.disconnect_sent = not with_will
    link.ignores_input = True
    session = link.session
    if expiry is not None:
        most = model.settings.persistent_client_expiration
        expiry = min(expiry, most) if most else expiry
        session.clean, session.expiry_ms = expiry == 0, expiry * 1000


HANDLERS = {
    "publish": handle_publish,
    "pubrel": handle_pubrel,
    "puback": handle_puback,
    "pubrec": handle_pubrec,
    "pubcomp": handle_pubcomp,
    "subscribe": handle_subscribe,
    "unsubscribe": handle_unsubscribe,
    "ping": handle_ping,
    "disconnect": handle_disconnect,
    "raised": handle_raised,
}
