# handling.py - what the broker makes of each packet of a client, as the model has it.
#
# Packets are tuples (kind, ...) as client.py makes them. `grown`: what the broker's counters
# say was refused in this window; the tables tell what that was.
from . import owing, peek
from .session import RELEASED, SENT_1, SENT_2, Subscription


def handle_publish(model, link, packet, grown):
    _, msg, qos, packet_id, _ = packet
    session = link.session
    if msg.deadline is not None:
        msg = msg.again()
    ends = model.settings.when_full["messages"] == "disconnect"
    if ends and qos and model.newly_refused and was_refused(model, link, qos, packet_id):
        link.deaf = True  # nothing has happened but that the connection ends
        return
    if qos == 2:
        take_2(model, link, msg, packet_id, grown)
        return
    if grown.aliases:
        link.deaf = True
        return
    found = is_wanted(model, msg) and owing.publish(model, msg, session)
    if qos:
        link.due.append(("ack", 4, packet_id, found))


def was_refused(model, link, qos, packet_id):
    """Something was: was it this, or another's of QoS 0, or a will?"""
    if qos == 2:
        return not peek.has_received(model.broker, link.session.name, packet_id)
    wills = [session.name for session in model.sessions if session.will]
    if [name for name in wills if not peek.has_will(model.broker, name)]:
        return not peek.attached(model.world, link)
    return True


def is_wanted(model, msg):
    most = model.broker.settings.message_size_limit
    return not most or msg.size <= most


def take_2(model, link, msg, packet_id, grown):
    session = link.session
    found = True
    if packet_id not in session.received:
        if len(session.received) == model.limits.received:
            link.deaf = True
            return
        held = model.settings.qos2_delivery == "release"
        wanted = is_wanted(model, msg)
        if msg.expiry is not None:
            owing.begin_to_expire(model, msg)
        keeps = not grown.messages or peek.has_received(model.broker, session.name, packet_id)
        if keeps and (wanted or link.level < 5):
            session.received[packet_id] = msg if held and wanted else None
            model.touch(session)
            if held and grown.messages:
                model.retained.learn_held(session, packet_id)
        if wanted and not held:
            found = owing.publish(model, msg, session)
    link.due.append(("ack", 5, packet_id, found))


def handle_pubrel(model, link, packet, grown):
    session = link.session
    if packet[1] in session.received:
        model.touch(session)
    msg = session.received.pop(packet[1], None)
    if msg:
        owing.publish(model, msg, session)
    link.due.append(("ack", 7, packet[1], True))


def handle_puback(model, link, packet, grown):
    owed = link.session.in_flight.get(packet[1])
    if owed and owed.state == SENT_1:
        link.session.done(owed)


def handle_pubrec(model, link, packet, grown):
    owed = link.session.in_flight.get(packet[1])
    if packet[2] >= 0x80:
        if owed and owed.state == SENT_2:
            link.session.done(owed)
        return
    if owed and owed.state == SENT_2:
        owed.state = RELEASED
        model.touch(link.session)
    link.due.append(("ack", 6, packet[1], True))


def handle_pubcomp(model, link, packet, grown):
    owed = link.session.in_flight.get(packet[1])
    if owed and owed.state == RELEASED:
        link.session.done(owed)


def handle_subscribe(model, link, packet, grown):
    _, packet_id, filters, identifier = packet
    codes = []
    for text, group, options in filters:
        granted = subscribe(model, link, text, group, options, identifier, grown)
        codes.append(min(options & 3, model.broker.max_qos) if granted else -1)
    link.due.append(("suback", packet_id, codes))


def subscribe(model, link, text, group, options, identifier, grown):
    session = link.session
    if not peek.subscribed(model.broker, session.name, text, group):
        if not grown.subscriptions:
            model.fail("%s does not get %s", session.name, text)
        return False
    sub = session.subscription(text, group)
    is_new = sub is None
    if is_new:
        sub = Subscription(text, group)
        session.subscriptions.append(sub)
    else:
        session.removed.append(sub.before())
    qos = min(options & 3, model.broker.max_qos)
    sub.update(qos, options, identifier, model.world.turns)
    session.changes += 1
    model.touch(session)
    handling = options >> 4 & 3
    if group is None and (handling == 0 or (handling == 1 and is_new)):
        model.retained.begin(session, sub, link)
    return True


def unsubscribe(model, session, sub):
    sub.gone = model.world.turns
    session.subscriptions.remove(sub)
    session.removed.append(sub)
    session.changes += 1
    model.touch(session)
    for scan in session.scans:
        if scan.subscription is sub:
            scan.due = {}
            scan.open = False


def handle_unsubscribe(model, link, packet, grown):
    _, packet_id, filters = packet
    codes = []
    for text, group in filters:
        old = link.session.subscription(text, group)
        codes.append(0 if old else 0x11)
        if old:
            unsubscribe(model, link.session, old)
    link.due.append(("unsuback", packet_id, codes))


def handle_ping(model, link, packet, grown):
    link.due.append(("pingresp",))


def handle_raised(model, link, packet, grown):
    link.deaf = True


def handle_disconnect(model, link, packet, grown):
    _, with_will, expiry = packet
    link.left = not with_will
    link.deaf = True
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
