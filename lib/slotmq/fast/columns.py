# columns.py - makes the table of columns that the inner loops use, when all tables exist; key: the
# fast path must ask which connections may publish on a route. Loaded only for that. Allocates the
# table.
#
# On MicroPython it is the table `o` of *_viper.py, with all columns that these use; constants.py
# has the position of each, under the name of its expression here: d.prev is D_PREV. On CPython
# broker.tables are four tables, which *_cpython.py unpack in this order, and fast_columns, which
# the fast path gets, is the broker itself. `make lint` compares both with
# this file (dev/tidy/columns.py).
from slotmq.constants import ANNOUNCED, NONE
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.bytes_viper import ALIGN, table

    def make(broker, key):
        c = broker.conns
        d = broker.deliveries
        m = broker.messages
        s = broker.sessions
        r = broker.subscriptions.routes
        if key:
            r.senders = ondemand.take("fast.senders_viper", broker.now).make(r, c.slots)
        senders = r.senders.data if r.senders else r.gen
        senders_width = r.senders.size if r.senders else 0
        r_mask = len(r.gen) - 1
        pool = broker.subscriptions.pool
        align_at = ALIGN
        s_most = s.ids_high[ANNOUNCED] if s.id_msg is None else 0
        last = NONE
        one = queues = 0
        p = (r_mask, r.topic_bytes, r.gen, r.len, r.text, r.state)
        p += (c.out, c.tx_end, c.tx_limit, c.tx, c.dirty, c.counts, pool, s.conn)
        p += (d.session, d.msg, d.prev, d.next, d.state, d.flags, d.count)
        p += (s.head, s.tail, s.cursor, s.queued, s.inflight, d.is_pending, d.window)
        p += (m.refs, m.first, m.next, m.count, m.topic_len, m.payload_len, m.flags)
        p += (d.pending, s.scans, m.arena.state, m.arena.next, m.arena.data)
        p += (c.session, broker.stats, broker.clock, broker.pkt, s.ids, s.id_count, s.progress)
        p += (r.first, r.end, c.state, c.buffered, c.reassembly, s.ids_high, c.last_activity)
        p += (align_at, d.slots, m.slots, s.received, s_most, last, one, s.dirty)
        p += (senders, senders_width, c.level, r.mid, queues)
        broker.tables = broker.fast_columns = c.columns = table(p)

else:
    def make(broker, key):
        if key:
            r = broker.subscriptions.routes
            r.senders = ondemand.take("fast.senders_cpython", broker.now).make(r, 0)
        broker.tables = broker.deliveries, broker.sessions, broker.messages, broker.conns
        broker.fast_columns = broker
