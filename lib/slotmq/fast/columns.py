# columns.py - what the inner loops walk, made once when all tables are there and
# loaded for that moment only. Allocates the table of columns.
#
# On MicroPython it is the table `o` of all hot_*.py: the columns of the queue, of place()
# and of the fast path, in the order of the constants there. On CPython the queue walks four
# tables, and the fast path the broker itself.
from slotmq.platform.runtime import MICROPYTHON, const

_NONE = const(0xFFFF)

if MICROPYTHON:
    from slotmq.fast.bytes_viper import ALIGN, table

    def make(broker):
        c = broker.conns
        d = broker.deliveries
        m = broker.messages
        s = broker.sessions
        r = broker.subscriptions.routes
        p = (len(r.gen) - 1, r.topic_bytes, r.gen, r.len, r.text, r.state, c.out, c.tx_end)
        p += (c.tx_limit, c.tx, c.dirty, c.counts, broker.subscriptions.pool, s.conn, d.session)
        p += (d.msg, d.prev, d.next, d.state, d.flags, d.count, s.head, s.tail, s.cursor)
        p += (s.queued, s.inflight, d.is_pending, d.window, m.refs, m.first, m.next, m.count)
        p += (m.topic_len, m.payload_len, m.flags, d.pending, s.scans, m.arena.state)
        p += (m.arena.next, m.arena.data, c.session, broker.stats, broker.clock, broker.pkt)
        p += (
            s.ids,
            s.id_count,
            s.progress,
            r.first,
            r.end,
            c.state,
            c.buffered,
            c.reassembly,
            s.ids_high,
        )
        p += (c.last_activity, ALIGN, d.slots, m.slots, s.received)
        p += (s.received if s.id_msg is None else 0, _NONE, 0, s.dirty)
        broker.queue = broker.short_way = c.columns = table(p)

else:

    def make(broker):
        broker.queue = broker.deliveries, broker.sessions, broker.messages, broker.conns
        broker.short_way = broker
