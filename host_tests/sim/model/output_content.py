# output_content.py - compare a PUBLISH of the broker with its delivery: topic, payload,
# properties, expiry, order, and the window of messages in flight.
from slotmq_tools.codec import EXPIRY


def check_order(model, link, delivery):
    copies = len(link.session.deliveries.get(delivery.msg.key(), (0, 0)))
    if not delivery.in_order or copies > 1 or model.settings.retry_interval:
        return
    if delivery.qos:
        if delivery.seq < link.last_seq:
            model.fail("link %d: out of order: %r", link.number, delivery)
        link.last_seq = delivery.seq
        return
    if delivery.msg.sender == link.session.name:
        return  # queued messages are overtaken by those that fit the outgoing buffer
    row = (delivery.msg.sender, delivery.msg.topic, delivery.msg.qos if model.world.storage else 0)
    if delivery.seq < link.last_seq_qos_0.get(row, 0):
        model.fail("link %d: out of order: %r", link.number, delivery)
    link.last_seq_qos_0[row] = delivery.seq


def check_content(model, link, packet, delivery):
    msg = delivery.msg
    good = packet.topic == msg.topic and packet.retain == delivery.retain
    good = good and len(packet.payload) == msg.size
    if link.level == 5:
        good = good and (packet.passed == msg.props or not msg.size)
        _check_expiry(model, link, packet, msg)
        changes = link.session.subscription_changes
        known = delivery.identifiers is not None and delivery.subscription_changes == changes
        if msg.size and known and sorted(packet.identifiers) != delivery.identifiers:
            what = (link.number, packet.identifiers, delivery.identifiers, delivery)
            model.fail("link %d: identifiers %s, not %s: %r", *what)
    if not good:
        model.fail("link %d: %s differs from its message: %r", link.number, packet.topic, msg)


def _check_expiry(model, link, packet, msg):
    left = packet.props.get(EXPIRY, -1)
    if msg.deadline is None:
        if left != -1:
            model.fail("link %d: an expiry that its publisher did not set: %r", link.number, msg)
        return
    late = (model.now() - msg.deadline) / 1000
    if not 0 < left <= msg.expiry:
        model.fail("link %d: expires in %d: %r", link.number, left, msg)
    copies = len(link.session.deliveries.get(msg.key(), ()))
    if link.blocked_turn >= model.world.turns - 1 or packet.dup or copies > 1:
        return  # it may have waited in the outgoing buffer
    slack = model.world.slack_ms / 1000
    if late > slack or abs(left + late) > 2 + slack:
        model.fail("link %d: %d s after its expiry: %r", link.number, late, msg)


def check_window(model, link, session):
    most = link.receive_max if link.level == 5 else model.broker.deliveries.window[0]
    count = 0
    for packet_id in session.in_flight:
        delivery = session.in_flight[packet_id]
        count += delivery.link is link if link.level == 5 else not delivery.restored
    if count > most:
        model.fail("link %d: %d in flight, of %d", link.number, count, most)
