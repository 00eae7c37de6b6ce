# own_messages.py - Broker.publish(): what the program publishes takes the fast path where it can,
# with the route that routes remember and one packet for all receivers. All else goes through
# embed/publishing.py. Loaded when the program publishes. Owns nothing. Allocates both texts.
from slotmq.constants import END, FAST_MAX, FLAGS, PACKET_ID, PAYLOAD, PUBLISH, TOPIC, TOPIC_LEN
from slotmq.embed import publishing
from slotmq.fast import copy
from slotmq.platform.runtime import MICROPYTHON


def publish(broker, topic, payload, qos, retain):
    """Broker.publish(): as a client publishes, with the same limits."""
    own = Publishing(broker)
    found = broker.__dict__
    # On CPython Broker.publish() is what other threads may call. Elsewhere the next call comes
    # here at once, if neither the program nor its class has a publish() around this one.
    if MICROPYTHON and "turn" in found and "publish" not in found:
        broker.publish = own.publish_own
    return own.publish_own(topic, payload, qos, retain)


class Publishing:
    """Broker.publish(). On MicroPython no frame of it has more than 11 words: it would be taken
    from the heap, whose search costs more than the message."""

    def __init__(self, broker):
        self.broker = broker

    def publish_own(self, topic, payload=b"", qos=0, retain=False):
        """See Broker.publish()."""
        publishing.check_idle(self.broker)
        if qos in (0, 1) and not retain and may_forward(self.broker):
            topic = b"" + publishing.encoded(topic)
            if forward(self.broker, topic, publishing.encoded(payload), qos):
                return True
        return _by_handlers(self.broker, topic, payload, qos, retain)


def _by_handlers(*args):
    return publishing.publish(*args)


def may_forward(broker):
    """May a message of the program take the fast path? Also where the packets of clients may not,
    since a hook or the log must see them."""
    if broker.fast_path:
        return True
    if broker.upgrade_qos or broker.max_qos < 2 or broker.subscriptions.every:
        return False
    return not (broker.journal_full or broker.journal and broker.journal.limit)


if MICROPYTHON:
    from micropython import heap_lock, heap_unlock

    from slotmq.fast.path_viper import accept, translate

    def forward(broker, topic, payload, qos):
        """Send a message as the fast path does with that of a client of version 3. False, and
        nothing has changed: a client's would go to the handlers."""
        n = len(topic)
        topic += payload
        heap_lock()  # so the larger frame is not taken from the heap either
        try:
            return _forward(broker, topic, n, qos)
        finally:
            heap_unlock()

    def _forward(broker, text, n, qos):
        # text: topic, of n bytes, and payload
        slot = broker.subscriptions.routes.find(text, 0, n)
        rest = len(text)
        pkt = broker.pkt
        rx = broker.rx
        broker.turn_soon = 1  # the next turn must not wait before it sends
        if slot < 0 or text[0] == 36 or rest + 16 > min(pkt[FAST_MAX], len(rx), 16383):
            return False
        pkt[TOPIC] = 8  # with its length before it
        rx[6] = n >> 8
        rx[7] = n & 255
        copy(rx, 8, text, 0, rest)
        pkt[TOPIC_LEN] = n
        pkt[END] = 8 + rest
        if qos:
            pkt[FLAGS] = 2
            pkt[PACKET_ID] = 1  # of nobody: at QoS 1 the connection has no part in it
            pkt[PAYLOAD] = 8 + n
            return accept(broker.tables, 0, slot, rx)
        rest += 2
        rx[5] = rest >> 7 or rest
        rx[4] = rest & 127 | 128 if rest > 127 else PUBLISH
        rx[3] = PUBLISH
        return translate(broker.tables, slot, rx, 3 if rest > 127 else 4, 1)

else:
    from slotmq.embed.arguments_cpython import forward
