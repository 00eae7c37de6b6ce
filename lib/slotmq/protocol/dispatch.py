# dispatch.py - finds the packets in received bytes and calls their handlers.
#
# A packet that arrives whole is handled in the receive buffer, rx. The beginning of a cut packet
# is copied to the connection's tail or to a reassembly buffer; later only the missing bytes are
# appended. readable() bounds the input: a turn reads at most rx_bytes from each client, and no
# more than there is space for answers, so that no acknowledgement is lost. Owns nothing. Does not
# allocate; handlers of CONNECT, SUBSCRIBE and UNSUBSCRIBE may.
from slotmq.constants import (ACCEPTED, BLOCKED, BODY, BYTES_IN, DEBUG, END, ENDING, FAST_READ,
    FIVE, FLAGS, FOR_THIS_PACKET, MALFORMED, NEW, NONE, NOTICE, PACKETS_IN, PACKET_TOO_LARGE,
    POLICY_DISCONNECT, PROTOCOL, PUBLISH_TYPE, QUOTA, REFUSED, START, TOO_BIG, TOTAL, TYPE,
    VERIFYING, WAITS, WITH_2)
from slotmq.delivery.encode import put_u16
from slotmq.delivery.lifecycle import publish_stored
from slotmq.fast import copy, next_packet
from slotmq.platform import heap, ondemand
from slotmq.protocol.acks import (handle_disconnect, handle_pingreq, handle_puback, handle_pubcomp,
    handle_pubrec, handle_pubrel, handle_unexpected)
from slotmq.protocol.publish import handle_publish

_STRETCH = 2000  # bytes of a cut packet for which there is a time limit (net/timers.py)
_MISSING = 1000  # if more bytes of a packet are missing, its bytes count as activity


def control(module, broker, conn, pkt, buf):
    """Have a packet handled by a module that is loaded on demand; -> the handler's result.

    The heap lock is lifted meanwhile, since loading and such handlers allocate."""
    heap.lift()
    try:
        return ondemand.take(module, broker.now).handle(broker, conn, pkt, buf)
    except MemoryError:
        broker.conns.refused += 1
        return _refuse(broker, conn, pkt, buf, pkt[END], QUOTA, POLICY_DISCONNECT)
    finally:
        heap.drop()


def _refuse(broker, conn, pkt, buf, end, reason, result):
    # For a CONNECT that is too large or finds no heap, of which buf[:end] has come: CONNACK.
    # Version 3 has no return code for one that is too large.
    conns = broker.conns
    at = pkt[BODY]
    if pkt[TYPE] != 1 or end - at < 7 or conns.state[conn] != NEW:
        return result
    is_5 = buf[at + 6] == 5 and broker.five
    put = conns.reserve(conn, 5) if is_5 or result == POLICY_DISCONNECT else -1
    if put < 0:
        return result
    tx = conns.tx
    if is_5:
        conns.level[conn] = 5
        put_u16(tx, put_u16(tx, put, 0x2003), reason)
        tx[put + 4] = 0
    else:
        conns.tx_end[conn] -= 1
        put_u16(tx, put_u16(tx, put, 0x2002), 0x0003)
    if broker._log_mask & NOTICE:
        broker.conns.shown = buf
        ondemand.log_event(broker, "refused", conn, reason)
        broker.conns.shown = None
    return REFUSED


def _connect(broker, conn, pkt, buf):
    return control("protocol.connect", broker, conn, pkt, buf)


def _subscribing(broker, conn, pkt, buf):
    return control("protocol.subscribe", broker, conn, pkt, buf)


# The handlers by packet type. FIRST is used until CONNECT is accepted, HANDLERS from then on.
_NOT = handle_unexpected
FIRST = (_NOT, _connect) + (_NOT,) * 14


def by_type(publishing, subscribing, leaving, authenticating):
    """A tuple of handlers; publishing: those of PUBLISH and of its four acknowledgements."""
    between = (subscribing, _NOT, subscribing, _NOT, handle_pingreq, _NOT)
    return (_NOT,) * 3 + publishing + between + (leaving, authenticating)


_PUBLISHING = (handle_publish, handle_puback, handle_pubrec, handle_pubrel, handle_pubcomp)
# After them the function that publishes a will, so that a recorder can intercept it.
HANDLERS = by_type(_PUBLISHING, _subscribing, handle_disconnect, _NOT) + (publish_stored,)


def readable(broker, conn):
    """How many bytes may be read from a client now: no more than there is space for answers."""
    conns = broker.conns
    state = conns.state[conn]
    if state == ENDING or state == VERIFYING or conns.chunked_msg[conn] != NONE:
        return 0
    n = conns.tx_limit[conn] - conns.tx_end[conn]
    if n < conns.tx_bytes >> 1 and conns.out[conn] != BLOCKED:
        broker.flush(conn)
        n = conns.tx_limit[conn] - conns.tx_end[conn]
    buffered = conns.buffered[conn]
    if state == NEW or state == FIVE:
        n -= conns.tx_bytes >> 1  # the answer to CONNECT or AUTH may be longer than they are
    elif buffered:
        # When the buffered bytes were read, no space was reserved for the answer to them.
        n -= 4 + min(buffered >> 2, conns.tx_bytes >> 1)
    if not conns.reassembly[FAST_READ] and not conns.has_reassembly(conn):
        n = min(n, conns.tail_bytes - buffered)
    return max(0, min(n, len(broker.rx)))


def receive(broker, conn, buf, at, n):
    """Handle buf[at:n], the bytes just read."""
    conns = broker.conns
    broker.reading = conn
    broker.queued_to_self = False
    size = n - at
    conns.tx_limit[conn] -= size
    if conns.buffered[conn]:
        at = _complete(broker, conn, buf, n)
    if at < n:
        at = _handle(broker, conn, buf, at, n, 0)
        if at < n:
            _store_partial(broker, conn, buf, at, n)
    buffered = conns.buffered[conn]
    if buffered < size or broker.pkt[TOTAL] - buffered > _MISSING:
        # Activity [3.1.2-24]. Further bytes of a cut packet count only if it is long.
        conns.last_activity[conn] = broker.now
    if conns.chunked_msg[conn] == NONE and conns.state[conn] != ENDING:
        conns.tx_limit[conn] = (conn + 1) * conns.tx_bytes
    broker.reading = NONE
    broker.resume(conn)


def _handle(broker, conn, buf, at, end, buffered):
    # Handle every whole packet in buf[at:end], of which the first `buffered` bytes came earlier;
    # -> the offset of a cut packet, or end.
    pkt = broker.pkt
    conns = broker.conns
    state = conns.state[conn]
    if state == ENDING:
        return end
    if state == VERIFYING:
        broker.users.hold(conn, buf, at, end, broker.stats, 0)
        return end
    handlers = _handlers(broker, conn)
    count = n = 0
    while at < end:
        if handlers is not broker.first_handlers and not buffered:
            if broker.fast_path or broker.bridges:
                at = broker.handle_fast(broker.fast_path, conn, buf, at, end)
                if at == end:
                    break
        n = next_packet(buf, at, end, pkt)
        if n <= 0:
            break
        if broker.journal and broker.journal.limit:  # little space: enough for this one?
            heap.lift()
            ondemand.take("journal.compaction", broker.now).weigh(broker.journal, pkt[TYPE], n)
            heap.drop()
        count += 1
        at += n
        broker.stats[BYTES_IN] += n
        # The space that was reserved for the packet in tx is given back: its answer needs it, or
        # the packet itself if its sender is a receiver. Once such a packet had to be queued, no
        # space is given back, so that later ones do not overtake it.
        limit = conns.tx_end[conn]
        if not broker.queued_to_self:
            limit = conns.tx_limit[conn] + n - buffered
        conns.tx_limit[conn] = min(limit, (conn + 1) * conns.tx_bytes)
        buffered = 0
        if broker.fast_path is None and broker._log_mask & DEBUG:
            broker.conns.shown = buf
            ondemand.log_event(broker, "received", conn, pkt)
            broker.conns.shown = None
        broker.no_commit = pkt[TYPE] != PUBLISH_TYPE or pkt[FLAGS] & 6
        result = handlers[pkt[TYPE]](broker, conn, pkt, buf)
        broker.no_commit = 0
        if broker.journal_full == FOR_THIS_PACKET:
            broker.journal_full = broker.subscriptions.journal_full = False
        if result:
            if result == WAITS:
                broker.users.hold(conn, buf, at - n, end, broker.stats, n)
                at = end
                break
            if result != ACCEPTED:
                _end(broker, conn, result, buf, at - n, at)
                at = end
                break
            handlers = _handlers(broker, conn)
        if conns.state[conn] == ENDING:
            at = end
    broker.stats[PACKETS_IN] += count
    return at if at == end else _rest(broker, conn, buf, at, end, n, handlers)


def _rest(broker, conn, buf, at, end, n, handlers):
    # buf[at:end] is no whole packet: n is what next_packet() said. -> `at` if it may become one;
    # else the connection ends.
    result = MALFORMED
    if n == 0:
        result = _never(handlers, buf[at], broker.conns.level[conn])
        if not result:
            return at
    if n < -1:
        result = _refuse(broker, conn, broker.pkt, buf, end, PACKET_TOO_LARGE, TOO_BIG)
    _end(broker, conn, result, buf, at, end)
    return end


def _end(broker, conn, result, buf, at, end):
    # End the connection because of its packet in buf[at:end], which perhaps is cut.
    pkt = broker.pkt
    pkt[START] = at
    pkt[END] = end
    broker.conns.shown = buf
    broker.end(conn, result)
    broker.conns.shown = None


def _never(handlers, first, level):
    # Can no packet with this first byte be right, whatever follows? -> the result, or 0.
    kind = first >> 4
    if handlers[kind] is _NOT:
        return PROTOCOL
    flags = first & 15
    if kind == PUBLISH_TYPE:
        wrong = flags & 6 == 6 or flags & 14 == 8 and level & 3 != 3
    else:  # the flags of CONNECT depend on its level; in MQTT 3.1 DUP may be set
        wrong = kind > 1 and flags & (7 if level & 3 == 3 else 15) != (WITH_2 >> kind & 1) << 1
    return MALFORMED if wrong else 0


def _handlers(broker, conn):
    # The handlers for the connection's state.
    conns = broker.conns
    if conns.state[conn] == NEW:
        return broker.first_handlers
    return broker.five.handlers if conns.level[conn] == 5 else broker.handlers


def _store_partial(broker, conn, buf, at, end):
    # Store the beginning of a cut packet until the rest comes.
    conns = broker.conns
    n = end - at
    if max(n, broker.pkt[TOTAL]) > conns.tail_bytes:
        conns.take_reassembly(conn)
    copy(conns.partial, conns.partial_off[conn], buf, at, n)
    conns.buffered[conn] = n
    conns.buffered_since[conn] = broker.now


def _complete(broker, conn, buf, n):
    # Append the missing bytes to the cut packet, and handle it when it is whole; -> how many bytes
    # of buf that took.
    conns = broker.conns
    at = 0
    while at < n:
        off = conns.partial_off[conn]
        buffered = conns.buffered[conn]
        size = next_packet(conns.partial, off, off + buffered, broker.pkt)
        total = broker.pkt[TOTAL]
        if size < 0:
            break
        if (
            total > conns.tail_bytes
            and not conns.has_reassembly(conn)
            and conns.take_reassembly(conn)
        ):
            off = conns.partial_off[conn]
        more = min(total - buffered if total else 1, n - at)
        copy(conns.partial, off + buffered, buf, at, more)
        conns.buffered[conn] = buffered + more
        if buffered % _STRETCH + more >= _STRETCH:
            conns.buffered_since[conn] = broker.now
        at += more
        if total == buffered + more:
            break
    off = conns.partial_off[conn]
    buffered = conns.buffered[conn]
    if _handle(broker, conn, conns.partial, off, off + buffered, buffered - at) > off:
        conns.drop_buffered(conn)
    return at
